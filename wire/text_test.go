// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"encoding/json"
	"slices"
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

// claims are two paths that lead through a list.
var claims = []wire.Path{
	{Names: "spec.volumes.persistentVolumeClaim", Numbers: [4]int32{2, 1, 2, 10}},
	{Names: "spec.volumes.ephemeral", Numbers: [4]int32{2, 1, 2, 29}},
}

// FuzzText holds Text and MayHave against the decoder: the same, or an error of one of them.
func FuzzText(f *testing.F) {
	p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-1"}}
	protobuf, err := p.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(true, protobuf)
	f.Add(true, append(append([]byte{}, protobuf...), protobuf...))
	withClaim, err := (&corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"},
	}}}}}).Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(true, withClaim)
	f.Add(false, []byte(`{"spec":{"nodeName":"node-1","x":[{}]}}`))
	f.Add(false, []byte(`{"spec":{"nodeName":"a"},"spec":{"nodeName":"b"}}`))
	f.Fuzz(func(t *testing.T, isProtobuf bool, raw []byte) {
		e := wire.JSON
		if isProtobuf {
			e = wire.Protobuf
		}
		have, err := e.Text(raw, wire.NodeName)
		var p corev1.Pod
		if !e.MayHave(raw, claims...) && e.Decode(raw, &p) == nil && len(p.Spec.Volumes) > 0 {
			for _, v := range p.Spec.Volumes {
				if v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
					t.Fatalf("MayHave is false, and the decoder finds the claim of %q", v.Name)
				}
			}
		}
		if err != nil {
			return
		}
		if e.Decode(raw, &p) == nil && p.Spec.NodeName != string(have) {
			t.Fatalf("%q, the decoder says %q", have, p.Spec.NodeName)
		}
	})
}

func TestMayHaveIsFalseOnlyIfNothingIsThere(t *testing.T) {
	volumes := func(sources ...corev1.VolumeSource) []byte {
		var p corev1.Pod
		for _, s := range sources {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "v", VolumeSource: s})
		}
		raw, err := p.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	empty := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	claimed := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}
	for name, c := range map[string]struct {
		encoding wire.Encoding
		raw      []byte
		want     bool
	}{
		"nothing":                {wire.Protobuf, nil, false},
		"no volume":              {wire.Protobuf, volumes(), false},
		"another volume":         {wire.Protobuf, volumes(empty, empty), false},
		"the first of several":   {wire.Protobuf, volumes(claimed, empty), true},
		"the last of several":    {wire.Protobuf, volumes(empty, claimed), true},
		"the second path":        {wire.Protobuf, volumes(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}), true},
		"bytes that are no Pod":  {wire.Protobuf, []byte{0xff}, true},
		"bytes that are cut off": {wire.Protobuf, volumes(empty)[:4], true},
		"JSON":                   {wire.JSON, []byte(`{}`), true},
	} {
		if got := c.encoding.MayHave(c.raw, claims...); got != c.want {
			t.Errorf("%s: MayHave is %t, want %t", name, got, c.want)
		}
		// Among more paths than one walk takes, and each of them by itself.
		many := slices.Concat(slices.Repeat([]wire.Path{{Names: "spec.none", Numbers: [4]int32{2, 4711}}}, wire.WhichMost), claims)
		if got := c.encoding.MayHave(c.raw, many...); got != c.want {
			t.Errorf("%s: MayHave of many paths is %t, want %t", name, got, c.want)
		}
		which := c.encoding.Which(c.raw, claims)
		for i, path := range claims {
			if got, want := which&(1<<i) != 0, c.encoding.MayHave(c.raw, path); got != want {
				t.Errorf("%s: Which says %t of %s, MayHave %t", name, got, path.Names, want)
			}
		}
	}
}

func TestMayHaveLooksForATextInAList(t *testing.T) {
	path := wire.Path{Names: "status.conditions.type", Numbers: [4]int32{3, 2, 1}, Equal: string(corev1.DisruptionTarget)}
	pod := func(types ...corev1.PodConditionType) []byte {
		p := corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		for _, of := range types {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: of, Status: corev1.ConditionTrue, Reason: string(corev1.DisruptionTarget)})
		}
		raw, err := p.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	whole := pod(corev1.PodReady, corev1.DisruptionTarget)
	for name, c := range map[string]struct {
		encoding wire.Encoding
		raw      []byte
		want     bool
	}{
		"no condition":                  {wire.Protobuf, pod(), false},
		"others, one with it as reason": {wire.Protobuf, pod(corev1.PodScheduled, corev1.PodReady), false},
		"one that is longer":            {wire.Protobuf, pod(corev1.DisruptionTarget + "s"), false},
		"the last":                      {wire.Protobuf, whole, true},
		"the first":                     {wire.Protobuf, pod(corev1.DisruptionTarget, corev1.PodReady), true},
		"cut off":                       {wire.Protobuf, whole[:len(whole)-9], true},
		"a number in its place":         {wire.Protobuf, []byte{3<<3 | 2, 4, 2<<3 | 2, 2, 1 << 3, 1}, true},
		"JSON":                          {wire.JSON, []byte(`{}`), true},
	} {
		if got := c.encoding.MayHave(c.raw, path); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
		other := path
		other.Equal = ""
		if both := c.encoding.Which(c.raw, []wire.Path{other, path}); both&2 != 0 != c.want || both&1 == 0 && c.want {
			t.Errorf("%s: among others the bits are %b, want %t", name, both, c.want)
		}
	}
}
