// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

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
