// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

func Example() {
	body := `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"42"},
	  "items":[{"metadata":{"name":"web-1"}},{"metadata":{"name":"web-2"}}]}`

	meta, err := wire.List(strings.NewReader(body), wire.JSON, 0, func(raw []byte) error {
		var pod corev1.Pod
		if err := wire.JSON.Decode(raw, &pod); err != nil {
			return err
		}
		fmt.Println(pod.Name)
		return nil
	})
	fmt.Println(meta.ResourceVersion, err)
	// Output:
	// web-1
	// web-2
	// 42 <nil>
}

// Metadata is read, and managedFields left out, without decoding the object.
func ExampleEncoding_ReadHead() {
	raw := []byte(`{"apiVersion":"shop.example.com/v1","kind":"Route","metadata":{"namespace":"team-a","name":"web",
	  "resourceVersion":"42","labels":{"tier":"front","app":"web"},"managedFields":[{"manager":"kubectl"}]},"spec":{"host":"example.com"}}`)

	var head wire.Head // used again for the next object
	if err := wire.JSON.ReadHead(raw, &head); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s/%s at %s\n", head.Namespace, head.Name, head.ResourceVersion)
	fmt.Println(object.Labels(head.AppendLabels(nil)))
	fmt.Printf("%d bytes of %d are worth keeping\n", len(head.AppendRest(nil, false)), len(raw))
	// Output:
	// team-a/web at 42
	// app=web,tier=front
	// 193 bytes of 233 are worth keeping
}
