// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

func TestTheEstimateOfADecodedObjectIsNearItsMemory(t *testing.T) {
	text := func(n int) []byte {
		raw, err := json.Marshal(realPod(n))
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	for name, build := range map[string]func(n int) (object.Object, int){
		"a Pod": func(n int) (object.Object, int) {
			raw, err := realPod(n).Marshal()
			p := new(corev1.Pod)
			if err == nil {
				err = wire.Protobuf.Decode(raw, p)
			}
			if err != nil {
				t.Fatal(err)
			}
			return p, len(raw)
		},
		"an unstructured Pod": func(n int) (object.Object, int) {
			raw, u := text(n), new(unstructured.Unstructured)
			if err := wire.JSON.Decode(raw, u); err != nil {
				t.Fatal(err)
			}
			return u, len(raw)
		},
		"a ConfigMap of many keys": func(n int) (object.Object, int) {
			c, size := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{}}, 0
			for i := range 20 + n%50 {
				key, value := fmt.Sprint("key-", i), string(make([]byte, 100))
				c.Data[key] = value
				size += len(key) + len(value)
			}
			return c, size
		},
	} {
		t.Run(name, func(t *testing.T) {
			const objects = 1000
			var w weights
			var estimated int64
			all := make([]object.Object, objects)
			before := heapNow()
			for n := range all {
				var encoded int
				all[n], encoded = build(n)
				estimated += w.of(all[n], encoded)
			}
			took := int64(heapNow() - before)
			runtime.KeepAlive(all)
			t.Logf("estimated %d bytes, took %d", estimated/objects, took/objects)
			if estimated < took*7/10 || estimated > took*13/10 {
				t.Errorf("estimated %d bytes for objects that take %d", estimated, took)
			}
		})
	}
}

func heapNow() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestAnObjectThatRefersToItselfIsMeasuredToo(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"a": "b"}}
	u.Object["self"] = u.Object
	var w weights
	if got := w.of(u, 100); got <= 0 {
		t.Errorf("estimated %d bytes", got)
	}
}
