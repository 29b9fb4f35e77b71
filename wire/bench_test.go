// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// benchmarkHead reads what a cache needs of an object, beside the full decode.
func benchmarkHead(b *testing.B, e wire.Encoding, raw []byte, decoded object.Object) {
	b.Run("head", func(b *testing.B) {
		var h wire.Head
		b.ReportAllocs()
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			if err := e.ReadHead(raw, &h); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("head+family+slim", func(b *testing.B) {
		var h wire.Head
		var family, slim []byte
		b.ReportAllocs()
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			if err := e.ReadHead(raw, &h); err != nil {
				b.Fatal(err)
			}
			family, slim = h.AppendFamily(family[:0]), h.AppendSlim(slim[:0])
		}
		b.ReportMetric(float64(len(slim)), "B-slim")
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			if err := e.Decode(raw, decoded); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkHeadProtobuf(b *testing.B) {
	benchmarkHead(b, wire.Protobuf, marshal(b, wire.Protobuf, realPod(1)), &corev1.Pod{})
}

func BenchmarkHeadJSON(b *testing.B) {
	b.Run("pod", func(b *testing.B) { benchmarkHead(b, wire.JSON, marshal(b, wire.JSON, realPod(1)), &corev1.Pod{}) })
	b.Run("custom", func(b *testing.B) {
		benchmarkHead(b, wire.JSON, marshal(b, wire.JSON, realCustom(1)), &unstructured.Unstructured{})
	})
}

// BenchmarkDecodeTree decodes a Pod into a tree, beside the decoder of apimachinery.
func BenchmarkDecodeTree(b *testing.B) {
	raw := marshal(b, wire.JSON, realPod(1))
	run := func(name string, decode func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if err := decode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("setpoint", func() error { return wire.JSON.Decode(raw, &unstructured.Unstructured{}) })
	run("apimachinery", func() error {
		var tree map[string]any
		return kjson.UnmarshalCaseSensitivePreserveInts(raw, &tree)
	})
}

// BenchmarkDecodeTrees decodes two states of a Pod, together and one after the other.
func BenchmarkDecodeTrees(b *testing.B) {
	before := realPod(1)
	after := before.DeepCopy()
	after.ResourceVersion += "1"
	after.Status.Phase = corev1.PodFailed
	old, now := marshal(b, wire.JSON, before), marshal(b, wire.JSON, after)
	b.Run("together", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := wire.DecodeTrees(old, now); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, raw := range [][]byte{old, now} {
				if err := wire.JSON.Decode(raw, &unstructured.Unstructured{}); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}

// BenchmarkListJSON cuts a list of custom resources; with heads, and beside the
// standard library, which decodes nothing of the items either.
func BenchmarkListJSON(b *testing.B) {
	l := map[string]any{"apiVersion": "shop.example.com/v1", "kind": "RouteList", "metadata": map[string]any{"resourceVersion": "9"}}
	items := []any{}
	for i := range 500 {
		items = append(items, realCustom(i).Object)
	}
	l["items"] = items
	body := marshal(b, wire.JSON, l)
	run := func(name string, item func(raw []byte) error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, err := wire.List(bytes.NewReader(body), wire.JSON, 0, item); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("cut", func([]byte) error { return nil })
	var h wire.Head
	run("cut+head", func(raw []byte) error { return wire.JSON.ReadHead(raw, &h) })
	run("cut+decode", func(raw []byte) error { return wire.JSON.Decode(raw, &unstructured.Unstructured{}) })
	b.Run("encoding/json", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			var l struct{ Items []json.RawMessage }
			if err := json.Unmarshal(body, &l); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// benchmarkWatch reads one event again and again, with heads and beside the decode.
func benchmarkWatch(b *testing.B, e wire.Encoding, frame []byte, decode object.Object) {
	run := func(name string, use func(raw []byte) error) {
		b.Run(name, func(b *testing.B) {
			r := wire.NewWatchReader(&repeat{frame: frame}, e, 0)
			b.ReportAllocs()
			b.SetBytes(int64(len(frame)))
			for b.Loop() {
				event, err := r.Next()
				if err != nil {
					b.Fatal(err)
				}
				if err := use(event.Object); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("cut", func([]byte) error { return nil })
	var h wire.Head
	run("cut+head", func(raw []byte) error { return e.ReadHead(raw, &h) })
	run("cut+decode", func(raw []byte) error { return e.Decode(raw, decode) })
}

// repeat is a watch body that never ends.
type repeat struct {
	frame []byte
	at    int
}

func (r *repeat) Read(p []byte) (int, error) {
	n := copy(p, r.frame[r.at:])
	r.at = (r.at + n) % len(r.frame)
	return n, nil
}

func BenchmarkWatchProtobuf(b *testing.B) {
	event := metav1.WatchEvent{Type: wire.Modified}
	event.Object.Raw = envelope(b, "v1", "Pod", realPod(1))
	frame := marshal(b, wire.Protobuf, &event)
	frame = append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
	benchmarkWatch(b, wire.Protobuf, frame, &corev1.Pod{})
}

func BenchmarkWatchJSON(b *testing.B) {
	frame := marshal(b, wire.JSON, map[string]any{"type": wire.Modified, "object": realCustom(1).Object})
	benchmarkWatch(b, wire.JSON, append(frame, '\n'), &unstructured.Unstructured{})
}
