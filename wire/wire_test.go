// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/wire"
)

func pod(i int) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a", Name: fmt.Sprintf("web-%d", i), UID: "u", ResourceVersion: fmt.Sprint(100 + i),
			Labels: map[string]string{"app": "web"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx"}}},
	}
}

// envelope wraps a message as an API server does.
func envelope(t testing.TB, apiVersion, kind string, message interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	raw, err := message.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
	body, err := unknown.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), body...)
}

func list(t testing.TB, e wire.Encoding, n int) []byte {
	t.Helper()
	remaining := int64(7)
	l := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "900", Continue: "next", RemainingItemCount: &remaining}}
	l.APIVersion, l.Kind = "v1", "PodList"
	for i := range n {
		l.Items = append(l.Items, pod(i))
	}
	if e == wire.Protobuf {
		return envelope(t, "v1", "PodList", l)
	}
	body, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// watch writes events as an API server does.
func watch(t testing.TB, e wire.Encoding, types ...string) []byte {
	t.Helper()
	var body bytes.Buffer
	for i, typ := range types {
		p := pod(i)
		p.APIVersion, p.Kind = "v1", "Pod"
		event := metav1.WatchEvent{Type: typ}
		if e == wire.Protobuf {
			event.Object.Raw = envelope(t, "v1", "Pod", &p)
			frame, err := event.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			body.Write(binary.BigEndian.AppendUint32(nil, uint32(len(frame))))
			body.Write(frame)
			continue
		}
		event.Object.Object = &p
		frame, err := json.Marshal(event)
		if err != nil {
			t.Fatal(err)
		}
		body.Write(append(frame, '\n'))
	}
	return body.Bytes()
}

func encodings(t *testing.T, f func(t *testing.T, e wire.Encoding)) {
	for _, e := range []wire.Encoding{wire.Protobuf, wire.JSON} {
		t.Run(e.String(), func(t *testing.T) { f(t, e) })
	}
}

func TestListHandsOutEveryItemAndTheListsOwnMetadata(t *testing.T) {
	encodings(t, func(t *testing.T, e wire.Encoding) {
		for _, n := range []int{0, 1, 1000} {
			var got []string
			// One byte at a time: where the network cuts must not matter.
			meta, err := wire.List(iotest.OneByteReader(bytes.NewReader(list(t, e, n))), e, 0, func(raw []byte) error {
				var p corev1.Pod
				if err := e.Decode(raw, &p); err != nil {
					return err
				}
				got = append(got, p.Name+"@"+p.ResourceVersion)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != n {
				t.Errorf("read %d items, want %d", len(got), n)
			}
			for i, name := range got {
				if want := fmt.Sprintf("web-%d@%d", i, 100+i); name != want {
					t.Fatalf("item %d is %s, want %s", i, name, want)
				}
			}
			if meta.Kind != "PodList" || meta.ResourceVersion != "900" || meta.Continue != "next" || *meta.RemainingItemCount != 7 {
				t.Errorf("list metadata = %+v", meta)
			}
		}
	})
}

func TestListCutAnywhereIsUnexpectedEOFAndItemsBeforeItAreWhole(t *testing.T) {
	encodings(t, func(t *testing.T, e wire.Encoding) {
		body := list(t, e, 3)
		for cut := range body {
			items := 0
			_, err := wire.List(bytes.NewReader(body[:cut]), e, 0, func(raw []byte) error {
				items++
				var p corev1.Pod
				return e.Decode(raw, &p)
			})
			if err == nil {
				// The envelope's last fields (content encoding and type) are
				// empty and may be missing.
				if e == wire.Protobuf && items == 3 {
					continue
				}
				t.Fatalf("cut at %d of %d: no error after %d items", cut, len(body), items)
			}
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("cut at %d of %d: %v, want unexpected EOF", cut, len(body), err)
			}
		}
	})
}

func TestListStopsWithTheErrorOfItem(t *testing.T) {
	encodings(t, func(t *testing.T, e wire.Encoding) {
		enough := errors.New("enough")
		calls := 0
		_, err := wire.List(bytes.NewReader(list(t, e, 3)), e, 0, func([]byte) error { calls++; return enough })
		if !errors.Is(err, enough) || calls != 1 {
			t.Errorf("err = %v after %d calls", err, calls)
		}
	})
}

func TestObjectsBeyondTheLimitAreRefused(t *testing.T) {
	encodings(t, func(t *testing.T, e wire.Encoding) {
		p := pod(0)
		p.Annotations = map[string]string{"big": strings.Repeat("x", 300<<10)}
		p.Kind, p.APIVersion = "Pod", "v1"
		l := &corev1.PodList{Items: []corev1.Pod{p}}
		l.APIVersion, l.Kind = "v1", "PodList"
		var body []byte
		if e == wire.Protobuf {
			body = envelope(t, "v1", "PodList", l)
		} else {
			body, _ = json.Marshal(l)
		}
		if _, err := wire.List(bytes.NewReader(body), e, 100<<10, func([]byte) error { return nil }); !errors.Is(err, wire.ErrTooLarge) {
			t.Errorf("list: %v, want ErrTooLarge", err)
		}
		if _, err := wire.List(bytes.NewReader(body), e, 1<<20, func([]byte) error { return nil }); err != nil {
			t.Errorf("list within the limit: %v", err)
		}
	})
	t.Run("a lying length takes no memory", func(t *testing.T) {
		body := binary.BigEndian.AppendUint32(nil, 60<<20)
		_, err := wire.NewWatchReader(bytes.NewReader(append(body, "short"...)), wire.Protobuf, 0).Next()
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("err = %v, want unexpected EOF", err)
		}
	})
}

func TestWatchHandsOutEvents(t *testing.T) {
	encodings(t, func(t *testing.T, e wire.Encoding) {
		types := []string{wire.Added, wire.Modified, wire.Deleted, wire.Bookmark}
		r := wire.NewWatchReader(iotest.OneByteReader(bytes.NewReader(watch(t, e, types...))), e, 0)
		for i, want := range types {
			event, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if event.Type != want || event.Kind != "Pod" || event.APIVersion != "v1" {
				t.Errorf("event %d = %s %s %s", i, event.Type, event.APIVersion, event.Kind)
			}
			var p corev1.Pod
			if err := e.Decode(event.Object, &p); err != nil {
				t.Fatal(err)
			}
			if p.Name != fmt.Sprintf("web-%d", i) {
				t.Errorf("event %d is of %s", i, p.Name)
			}
		}
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("after the last event: %v, want EOF", err)
		}
	})
}

func TestWatchCutWithinAnEventIsUnexpectedEOF(t *testing.T) {
	encodings(t, func(t *testing.T, e wire.Encoding) {
		body := watch(t, e, wire.Added)
		for cut := 1; cut < len(body)-1; cut++ {
			_, err := wire.NewWatchReader(bytes.NewReader(body[:cut]), e, 0).Next()
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("cut at %d of %d: %v, want unexpected EOF", cut, len(body), err)
			}
		}
	})
}

func TestUnstructuredKeepsWholeNumbers(t *testing.T) {
	var u unstructured.Unstructured
	if err := wire.JSON.Decode([]byte(`{"apiVersion":"x/v1","kind":"W","spec":{"n":9007199254740993}}`), &u); err != nil {
		t.Fatal(err)
	}
	n, _, err := unstructured.NestedInt64(u.Object, "spec", "n")
	if err != nil || n != 9007199254740993 {
		t.Errorf("n = %d, %v", n, err)
	}
}

func TestEncodingOfContentType(t *testing.T) {
	for contentType, want := range map[string]wire.Encoding{
		"application/json":                                 wire.JSON,
		"application/json;stream=watch":                    wire.JSON,
		"application/vnd.kubernetes.protobuf":              wire.Protobuf,
		"application/vnd.kubernetes.protobuf;stream=watch": wire.Protobuf,
	} {
		if got, err := wire.EncodingOf(contentType); err != nil || got != want {
			t.Errorf("EncodingOf(%q) = %v, %v", contentType, got, err)
		}
	}
	for _, contentType := range []string{"", "text/html", "application/yaml"} {
		if _, err := wire.EncodingOf(contentType); err == nil {
			t.Errorf("EncodingOf(%q): want an error", contentType)
		}
	}
}

// FuzzList holds the cutting against the real decoder: what that accepts must be
// cut into the same items.
func FuzzList(f *testing.F) {
	for _, e := range []wire.Encoding{wire.Protobuf, wire.JSON} {
		f.Add(list(f, e, 2), e == wire.Protobuf)
		f.Add(list(f, e, 0), e == wire.Protobuf)
	}
	f.Fuzz(func(t *testing.T, body []byte, protobuf bool) {
		e := wire.JSON
		if protobuf {
			e = wire.Protobuf
		}
		var items []string
		meta, err := wire.List(bytes.NewReader(body), e, 1<<20, func(raw []byte) error {
			var p corev1.Pod
			if err := e.Decode(raw, &p); err != nil {
				return err
			}
			items = append(items, p.Name)
			return nil
		})
		if err != nil || e == wire.JSON {
			return
		}
		_, _, raw, err := e.Open(body)
		if err != nil {
			t.Fatalf("List accepts what Open refuses: %v", err)
		}
		var want corev1.PodList
		if err := want.Unmarshal(raw); err != nil {
			return
		}
		if len(items) != len(want.Items) || meta.ResourceVersion != want.ResourceVersion {
			t.Fatalf("cut into %q at %q, the decoder has %d items at %q", items, meta.ResourceVersion, len(want.Items), want.ResourceVersion)
		}
	})
}

// FuzzWatch: no input may panic, hang or be read for ever.
func FuzzWatch(f *testing.F) {
	for _, e := range []wire.Encoding{wire.Protobuf, wire.JSON} {
		f.Add(watch(f, e, wire.Added, wire.Bookmark), e == wire.Protobuf)
	}
	f.Fuzz(func(t *testing.T, body []byte, protobuf bool) {
		e := wire.JSON
		if protobuf {
			e = wire.Protobuf
		}
		r := wire.NewWatchReader(bytes.NewReader(body), e, 1<<20)
		for range len(body) + 1 {
			event, err := r.Next()
			if err != nil {
				return
			}
			var p corev1.Pod
			_ = e.Decode(event.Object, &p)
		}
		t.Fatal("more events than bytes")
	})
}
