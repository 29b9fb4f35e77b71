// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/wire"
)

func TestTextReadsOneFieldInBothEncodings(t *testing.T) {
	for _, node := range []string{"", "node-1", "with \"quotes\" and ü"} {
		p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: node, ServiceAccountName: "other"}}
		protobuf, err := p.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		for e, raw := range map[wire.Encoding][]byte{wire.Protobuf: protobuf, wire.JSON: text} {
			if got, err := e.Text(raw, wire.NodeName); err != nil || string(got) != node {
				t.Errorf("%s: %q, %v; want %q", e, got, err, node)
			}
		}
	}
	for _, raw := range []string{`{}`, `{"spec":null}`, `{"spec":{}}`, `{"spec":{"nodeName":null}}`} {
		if got, err := wire.JSON.Text([]byte(raw), wire.NodeName); err != nil || len(got) > 0 {
			t.Errorf("%s: %q, %v", raw, got, err)
		}
	}
}

func TestAnObjectIsReadWithoutOneField(t *testing.T) {
	p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	p.Name = "web"
	once, err := p.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	none, err := (&corev1.ConfigMap{}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		encoding wire.Encoding
		raw      []byte
		node     string
	}{
		"protobuf": {wire.Protobuf, once, ""},
		"a field that is there twice, which is one with both": {wire.Protobuf, append(append([]byte{}, once...), once...), ""},
		"JSON": {wire.JSON, text, "n"},
	} {
		before := bytes.Clone(c.raw)
		rest, err := c.encoding.Without(c.raw, wire.Spec)
		var got corev1.Pod
		if err == nil {
			err = c.encoding.Decode(rest, &got)
		}
		if err != nil || got.Name != "web" || got.Status.Phase != corev1.PodRunning || got.Spec.NodeName != c.node {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if !bytes.Equal(c.raw, before) {
			t.Errorf("%s: the encoding was changed", name)
		}
	}
	if rest, err := wire.Protobuf.Without(none, wire.Spec); err != nil || !bytes.Equal(rest, none) {
		t.Errorf("without the field: %q, %v", rest, err)
	}
	if _, err := wire.Protobuf.Without([]byte{0xff}, wire.Spec); err == nil {
		t.Error("no error for bytes that are no message")
	}
}

// FuzzText holds Text against the decoder: the same, or an error of one of them.
func FuzzText(f *testing.F) {
	p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-1"}}
	protobuf, err := p.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(true, protobuf)
	f.Add(true, append(append([]byte{}, protobuf...), protobuf...))
	f.Add(false, []byte(`{"spec":{"nodeName":"node-1","x":[{}]}}`))
	f.Add(false, []byte(`{"spec":{"nodeName":"a"},"spec":{"nodeName":"b"}}`))
	f.Fuzz(func(t *testing.T, isProtobuf bool, raw []byte) {
		e := wire.JSON
		if isProtobuf {
			e = wire.Protobuf
		}
		have, err := e.Text(raw, wire.NodeName)
		if err != nil {
			return
		}
		var p corev1.Pod
		if e.Decode(raw, &p) == nil && p.Spec.NodeName != string(have) {
			t.Fatalf("%q, the decoder says %q", have, p.Spec.NodeName)
		}
	})
}
