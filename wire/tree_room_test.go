// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// An element of a list takes two bytes, and a decoder remembers 56 for it while it reads the list.
func TestADecoderKeepsNoRoomForALongList(t *testing.T) {
	schema, ok := SchemaOf(reflect.TypeFor[corev1.Pod]())
	if !ok {
		t.Fatal("Pods have no schema")
	}
	long := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Args: make([]string, 500_000)}}}}
	p := &messageTree{texts: treeReader{treeTexts: newTreeTexts()}, quantities: map[string]string{}}
	tree := map[string]any{}
	if !p.message(schema, marshaled(t, long), tree, 0) {
		t.Fatal("it was not decoded here")
	}
	if cap(p.fields) < 500_000 {
		t.Fatalf("room for %d fields while a list of 500,000 was read", cap(p.fields))
	}
	p.close()
	if cap(p.fields) > mostPlaces || cap(p.elements) > mostPlaces {
		t.Errorf("room for %d fields and %d elements after it, want %d at most", cap(p.fields), cap(p.elements), mostPlaces)
	}

	short := &messageTree{texts: treeReader{treeTexts: newTreeTexts()}, quantities: map[string]string{}}
	if !short.message(schema, marshaled(t, &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}}), map[string]any{}, 0) {
		t.Fatal("it was not decoded here")
	}
	room := cap(short.fields)
	short.close()
	if room == 0 || cap(short.fields) != room {
		t.Errorf("room for %d fields after a short message, and %d before", cap(short.fields), room)
	}
	for _, f := range short.fields[:room] {
		if f.value != nil {
			t.Error("bytes of the message are kept")
		}
	}

	texts := &treeReader{treeTexts: newTreeTexts()}
	texts.open([]byte(`{"args":[` + strings.Repeat(`"",`, 100_000) + `""]}`))
	if _, ok := texts.whole(); !ok {
		t.Fatal("the JSON was not decoded here")
	}
	texts.close()
	if cap(texts.elements) > mostPlaces {
		t.Errorf("room for %d elements after it, want %d at most", cap(texts.elements), mostPlaces)
	}
}

// Bytes that are no message are given up within it. What was read of them until then is forgotten too.
func TestADecoderKeepsNothingOfAMessageThatBreaksOff(t *testing.T) {
	p := &messageTree{texts: treeReader{treeTexts: newTreeTexts()}, quantities: map[string]string{}}
	whole := marshaled(t, &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}})
	if p.parse(whole[:len(whole)-1]) || len(p.fields) == 0 {
		t.Fatalf("%d fields were read before the end", len(p.fields))
	}
	p.close()
	for _, f := range p.fields[:cap(p.fields)] {
		if f.value != nil {
			t.Error("bytes of the message are kept")
		}
	}
}
