// SPDX-License-Identifier: LGPL-2.1-only OR BSD-2-Clause

// Command k8s FILE prints what kinds of objects a manifest has. It fails if one has a field
// that the types of Kubernetes do not have, or of another type.
package main

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"os"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func newDecoder() (runtime.Decoder, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apps.AddToScheme, core.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	options := json.SerializerOptions{Yaml: true, Strict: true}
	return json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, options), nil
}

func decode(file io.Reader) error {
	decoder, err := newDecoder()
	if err != nil {
		return err
	}
	documents := yaml.NewYAMLReader(bufio.NewReader(file))
	for {
		document, err := documents.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		_, kind, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return err
		}
		fmt.Println(kind.Kind)
	}
}

func main() {
	log.SetFlags(0)
	file, err := os.Open(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	if err := decode(file); err != nil {
		log.Fatalf("%s: %v", os.Args[1], err)
	}
}
