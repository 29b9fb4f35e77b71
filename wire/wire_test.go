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
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

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
	unknown := apiruntime.Unknown{TypeMeta: apiruntime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}
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
			if meta.Kind != "PodList" || meta.ResourceVersion != "900" || meta.Continue != "next" {
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

// endless sends one byte without end, and counts.
type endless struct {
	start string
	fill  byte
	sent  int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.sent < len(e.start) {
		n := copy(p, e.start[e.sent:])
		e.sent += n
		return n, nil
	}
	for i := range p {
		p[i] = e.fill
	}
	e.sent += len(p)
	return len(p), nil
}

// What never ends is given up at the limit, with no more memory than that.
func TestAValueWithoutEndTakesNoMoreThanTheLimit(t *testing.T) {
	const limit = 1 << 20
	for start, fill := range map[string]byte{
		`{"items":["`: 'a', `{"items":[{"a":"`: '\\', `{"x":[`: '[', `{"`: 'n', `{"x":`: '7', `{"items":[{"a":1`: ' ',
	} {
		body := &endless{start: start, fill: fill}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := wire.List(body, wire.JSON, limit, func([]byte) error { return nil })
		runtime.ReadMemStats(&after)
		if !errors.Is(err, wire.ErrTooLarge) && !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("%s%c…: %v", start, fill, err)
		}
		if body.sent > limit+64<<10 {
			t.Errorf("%s%c…: %d bytes were read", start, fill, body.sent)
		}
		// Each buffer is twice the one before: together they are two of the last.
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 3*limit {
			t.Errorf("%s%c…: %d bytes were allocated", start, fill, taken)
		}
	}
}

func TestMalformedJSONIsRefused(t *testing.T) {
	for _, body := range []string{
		`[]`, `{"items":[{}]}x`, `{"items":[{}]} {}`, `{"items":[{}],"items":[{}]}`, `{"items":{}}`, `{"items":[{},]}`, `{"items":[{} {}]}`,
		`{"items":[{"a":tru}]}`, `{"items":[{"a":01}]}`, `{"items":[{'a':1}]}`, "{\"items\":[{\"a\":\"\n\"}]}", `{"items":[{"a":1]]}`,
		`{items:[]}`, `{"items":[],}`, `{"kind":5}`, `{"metadata":{"resourceVersion":5}}`, `{"items":nil}`,
	} {
		_, err := wire.List(strings.NewReader(body), wire.JSON, 0, func([]byte) error { return nil })
		if !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("list %s: %v, want ErrMalformed", body, err)
		}
	}
	for _, body := range []string{
		`[]`, `5 `, `{"type":"ADDED"}`, `{"type":"ADDED","object":null}`, `{"type":"ADDED","object":[]}`, `{"type":1,"object":{}}`,
		`{"type":"ADDED","object":{"kind":1}}`, `{"type":"ADDED" "object":{}}`,
	} {
		_, err := wire.NewWatchReader(strings.NewReader(body), wire.JSON, 0).Next()
		if !errors.Is(err, wire.ErrMalformed) {
			t.Errorf("watch %s: %v, want ErrMalformed", body, err)
		}
	}
}

func TestOddButRightJSONIsRead(t *testing.T) {
	body := " {\n\"x\":[1,{}], \"\\u0069tems\" : [ {\"a\":-0.5e+7} ,\t{} ] , \"kind\" : null, \"metadata\":{\"resourceVersion\":\"7\"} }\r\n"
	var items []string
	meta, err := wire.List(strings.NewReader(body), wire.JSON, 0, func(raw []byte) error { items = append(items, string(raw)); return nil })
	if err != nil || meta.ResourceVersion != "7" || !slices.Equal(items, []string{`{"a":-0.5e+7}`, `{}`}) {
		t.Errorf("%q, %+v, %v", items, meta, err)
	}
	if meta, err := wire.List(strings.NewReader(`{"items":null}`), wire.JSON, 0, nil); err != nil || meta != (wire.ListMeta{}) {
		t.Errorf("%+v, %v", meta, err)
	}
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
			items = append(items, string(raw))
			return nil
		})
		// Where the network cuts must not matter, neither for items nor for errors.
		var again []string
		_, err2 := wire.List(iotest.OneByteReader(bytes.NewReader(body)), e, 1<<20, func(raw []byte) error {
			again = append(again, string(raw))
			return nil
		})
		if !slices.Equal(items, again) || (err == nil) != (err2 == nil) {
			t.Fatalf("cut into %q (%v) and, byte by byte, into %q (%v)", items, err, again, err2)
		}
		if err != nil {
			return
		}
		if e == wire.JSON {
			wantJSONItems(t, body, items)
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

// wantJSONItems holds items against the standard library's.
func wantJSONItems(t *testing.T, body []byte, items []string) {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		t.Fatalf("List accepts what is no JSON: %v", err)
	}
	var want []json.RawMessage
	if raw, there := members["items"]; there {
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.EqualFunc(items, want, func(have string, want json.RawMessage) bool { return have == string(want) }) {
		t.Fatalf("cut into %q, want %q", items, want)
	}
}

// FuzzOpenJSON: Open accepts the objects that are JSON, and nothing else.
func FuzzOpenJSON(f *testing.F) {
	for _, s := range []string{
		`{}`, ` {"kind":"a","apiVersion":null} `, `{"a":[1,-0.5e+7,true,false,null,"\u00e4\\"]}`, `{"a":01}`, `{"a":1.}`, `{"a":"\x"}`,
		`[]`, `{"a" 1}`, `{,}`, `{"a":1,}`, `{"a":[1,]}`, `{"a":nul}`, `{"a":1}x`, "{\"a\":\"\x00\"}", `{"a":"\u12g4"}`, `{"a":[}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		apiVersion, kind, _, err := wire.JSON.Open(body)
		var want map[string]json.RawMessage
		wantErr := json.Unmarshal(body, &want)
		if isObject := wantErr == nil && want != nil; !isObject {
			if err == nil {
				t.Fatalf("%q is opened; the standard library: %v", body, wantErr)
			}
			return
		}
		for name, have := range map[string]string{"apiVersion": apiVersion, "kind": kind} {
			var text string
			raw, there := want[name]
			if there && err != nil {
				return // it, or one before it of the same name, may be no text
			}
			if there && json.Unmarshal(raw, &text) != nil || text != have {
				t.Fatalf("%s is %q, want %q", name, have, text)
			}
		}
		if err != nil {
			t.Fatalf("%q: %v", body, err)
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
