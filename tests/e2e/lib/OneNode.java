// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/** OneNode DIRECTORY PORT: OpenSearch, as its jars have it; they come without a launcher. */
public class OneNode extends Node {
	OneNode(Environment environment)
	{
		super(environment, List.of(Netty4Plugin.class), true);
	}

	public static void main(String[] arguments) throws Exception
	{
		Settings settings = Settings.builder()
			.put("path.home", arguments[0])
			.put("http.port", arguments[1])
			.put("network.host", "127.0.0.1")
			.put("discovery.type", "single-node")
			.put("cluster.routing.allocation.disk.threshold_enabled", false)
			.build();

		new OneNode(InternalSettingsPreparer.prepareEnvironment(
			settings, Map.of(), null, () -> "one")).start();
		new CountDownLatch(1).await();
	}
}
