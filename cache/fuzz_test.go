// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// bodies is a server that answers one list and one watch with given bytes, such as fakeapi
// would never send, and is away then.
type bodies struct {
	encoding    wire.Encoding
	list, watch []byte

	mu            sync.Mutex
	lists, others int
}

func (b *bodies) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := r.URL.Query()
	answer := &http.Response{StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Request: r}
	answer.Header.Set("Content-Type", b.encoding.MediaType())
	switch {
	case q.Get("sendInitialEvents") != "":
		answer.StatusCode = http.StatusUnprocessableEntity
		answer.Header.Set("Content-Type", "application/json")
		answer.Body = io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`))
	case q.Get("watch") == "" && b.lists == 0:
		b.lists++
		answer.Body = io.NopCloser(bytes.NewReader(b.list))
	case q.Get("watch") != "" && b.others == 0:
		b.others++
		answer.Body = io.NopCloser(bytes.NewReader(b.watch))
	default:
		return nil, errNoConnection
	}
	return answer, nil
}

// read runs an informer of Pods, with a handler of every step, against a server. It returns
// what the informer holds and what the handler knows in the end. Time passes as it needs to.
func (b *bodies) read(t *testing.T) (state Snapshot[*corev1.Pod], known map[object.Key]Item[*corev1.Pod]) {
	known = map[object.Key]Item[*corev1.Pod]{}
	synctest.Test(t, func(t *testing.T) {
		c, err := client.New(&rest.Config{Host: "http://fuzz", Transport: b})
		if err != nil {
			t.Fatal(err)
		}
		factory := NewFactory(c, slog.New(slog.DiscardHandler))
		informer := Informer[*corev1.Pod](factory)
		if _, err := informer.AddHandler(func(e Event[*corev1.Pod]) {
			if e.Old.Exists() && e.Kind != Deleted && known[e.Key()] != e.Old || !e.Old.Exists() && known[e.Key()].Exists() {
				t.Errorf("%s of %s does not follow from what the handler knows", e.Kind, e.Key())
			}
			if delete(known, e.Key()); e.Kind != Deleted {
				known[e.Key()] = e.New
			}
		}, HandlerOptions{EveryStep: true}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = factory.Run(ctx) })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		state = informer.Snapshot()
		cancel()
		running.Wait()
	})
	return state, known
}

// agree checks that what the store, its indexes and a handler say is one.
func agree(t *testing.T, s Snapshot[*corev1.Pod], known map[object.Key]Item[*corev1.Pod]) {
	n := 0
	for key, item := range s.All() {
		n++
		if known[key] != item {
			t.Errorf("the handler does not know %s as the store has it", key)
		}
		if s.Get(key) != item || item.Key() != key {
			t.Errorf("%s is found by another key", key)
		}
		if _, err := object.ParseVersion(string(item.Meta().Version)); err != nil {
			t.Error(err)
		}
		_, _ = item.Object() // its content may be anything; it must not panic
		_, _ = item.Annotations()
	}
	if n != s.Len() || n != len(known) {
		t.Errorf("%d objects are found, the store counts %d, the handler knows %d", n, s.Len(), len(known))
	}
	if !s.Version().AtLeast(s.Complete()) {
		t.Errorf("complete up to %s, at version %s", s.Complete(), s.Version())
	}
}

// FuzzBytes has an informer read any bytes as a list and as a watch. Nothing panics, and what
// it holds agrees with what it told.
func FuzzBytes(f *testing.F) {
	for _, e := range []wire.Encoding{wire.JSON, wire.Protobuf} {
		for _, script := range [][]byte{{}, {1, 2, 3, 4, 5}, {9, 40, 200, 77, 3, 3, 3, 128, 255, 0, 0, 17}} {
			h := newHistory(script)
			list, watch := h.bodies(f, e)
			f.Add(e == wire.Protobuf, list, watch)
			f.Add(e == wire.Protobuf, list[:len(list)/2], watch)
			f.Add(e == wire.Protobuf, list, watch[:len(watch)*2/3])
			f.Add(e == wire.Protobuf, watch, list)
		}
	}
	f.Add(false, []byte(`{"kind":"PodList","items":null,"metadata":{"resourceVersion":"1"}}`), []byte(`{"type":"ERROR","object":{"kind":"Status","code":410}}`))
	f.Fuzz(func(t *testing.T, protobuf bool, list, watch []byte) {
		b := &bodies{list: list, watch: watch}
		if protobuf {
			b.encoding = wire.Protobuf
		}
		s, known := b.read(t)
		agree(t, s, known)
	})
}

// history is a list and the events after it, made of a script of bytes, and what they lead
// to.
type history struct {
	state   []*corev1.Pod
	events  []metav1.WatchEvent
	objects []*corev1.Pod // of the events
	truth   map[object.Key]*corev1.Pod
	version int // of the last event
	listed  int
}

// newHistory makes up a history: each byte is one step. Steps repeat what was told, share
// versions, delete, replace, and move on without an event. No name has two changes at one
// version.
func newHistory(script []byte) *history {
	h := &history{truth: map[object.Key]*corev1.Pod{}, version: 10, listed: 10}
	changed := map[object.Key]int{}
	first := len(script) / 3
	var past []int // indexes of events that may come again
	for n, b := range script {
		name, what := fmt.Sprint("p", b%7), b/7
		key := object.Key{Namespace: []string{"x", "y"}[b%2], Name: name}
		if n < first {
			p := h.pod(key, fmt.Sprint(2+int(b)%8), fmt.Sprint("uid-", n), what)
			if h.truth[key] == nil {
				h.truth[key] = p
				h.state = append(h.state, p)
			}
			continue
		}
		if what%5 != 0 || changed[key] == h.version || h.version == h.listed { // else it shares the version before
			h.version++
		}
		before := h.truth[key]
		version := fmt.Sprint(h.version)
		switch {
		case what%11 == 3:
			h.event(wire.Bookmark, &corev1.Pod{TypeMeta: podType, ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}})
			h.version++ // nothing more comes at the version of a bookmark
			continue
		case what%11 == 4 && len(past) > 0: // an old event again
			at := past[int(b)%len(past)]
			h.events = append(h.events, h.events[at])
			h.objects = append(h.objects, h.objects[at])
			continue
		case before == nil:
			p := h.pod(key, version, fmt.Sprint("uid-", n), what)
			h.truth[key] = p
			h.event(wire.Added, p)
		case what%3 == 0:
			p := before.DeepCopy()
			p.ResourceVersion = version
			delete(h.truth, key)
			h.event(wire.Deleted, p)
		default:
			p := h.pod(key, version, string(before.UID), what)
			if what%4 == 1 {
				p.UID = types.UID(fmt.Sprint("uid-", n)) // another one, whose coming was not seen
			}
			h.truth[key] = p
			h.event(wire.Modified, p)
		}
		changed[key] = h.version
		// Only what is older than the newest version is known to be old.
		past = past[:0]
		for at, o := range h.objects {
			if object.Version(o.ResourceVersion).Compare(object.Version(version)) < 0 && h.events[at].Type != wire.Bookmark {
				past = append(past, at)
			}
		}
	}
	return h
}

var podType = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}

func (h *history) pod(key object.Key, version, uid string, what byte) *corev1.Pod {
	p := &corev1.Pod{TypeMeta: podType, ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: types.UID(uid), ResourceVersion: version}}
	p.Labels = map[string]string{"what": fmt.Sprint(what)}
	p.Annotations = map[string]string{"long": strings.Repeat("ab\"\u00e4 ", int(what))}
	p.Spec.NodeName = fmt.Sprint("node-", what)
	if what%6 == 5 {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "rs", Controller: &yes}}
	}
	return p
}

func (h *history) event(kind string, p *corev1.Pod) {
	h.events = append(h.events, metav1.WatchEvent{Type: kind})
	h.objects = append(h.objects, p)
}

// bodies encodes the list and the watch as a server does.
func (h *history) bodies(t testing.TB, e wire.Encoding) (list, watch []byte) {
	pods := &corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(h.listed)}}
	for _, p := range h.state {
		pods.Items = append(pods.Items, *p)
	}
	encode := func(o interface {
		runtime.Object
		Marshal() ([]byte, error)
	}, kind string) []byte {
		var raw []byte
		var err error
		if e == wire.JSON {
			raw, err = json.Marshal(o)
		} else if raw, err = o.Marshal(); err == nil {
			raw, err = wire.Seal("v1", kind, raw)
		}
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	list = encode(pods, "PodList")
	for n, event := range h.events {
		event.Object.Raw = encode(h.objects[n], "Pod")
		if e == wire.JSON {
			raw, err := json.Marshal(event)
			if err != nil {
				t.Fatal(err)
			}
			watch = append(append(watch, raw...), '\n')
			continue
		}
		raw, err := event.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		watch = append(binary.BigEndian.AppendUint32(watch, uint32(len(raw))), raw...)
	}
	return list, watch
}

// FuzzHistory has an informer read the list and the watch of a history, and holds what it
// has in the end against the history's end.
func FuzzHistory(f *testing.F) {
	f.Add([]byte{}, false)
	f.Add([]byte("lists and watches"), true)
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 35, 70, 105, 140, 175, 210, 245, 35, 0, 0, 0}, false)
	f.Add(bytes.Repeat([]byte{0, 1, 22, 29, 36, 255, 98, 101, 3}, 20), true)
	f.Fuzz(func(t *testing.T, script []byte, protobuf bool) {
		if len(script) > 2000 {
			return
		}
		h := newHistory(script)
		b := &bodies{}
		if protobuf {
			b.encoding = wire.Protobuf
		}
		b.list, b.watch = h.bodies(t, b.encoding)
		s, known := b.read(t)
		agree(t, s, known)
		if s.Len() != len(h.truth) {
			t.Errorf("the store has %d objects, want %d", s.Len(), len(h.truth))
		}
		for key, want := range h.truth {
			have, err := s.Get(key).Object()
			if err != nil {
				t.Errorf("%s: %v", key, err)
				continue
			}
			want, have := want.DeepCopy(), have.DeepCopy()
			want.TypeMeta, have.TypeMeta = metav1.TypeMeta{}, metav1.TypeMeta{}
			if !equality.Semantic.DeepEqual(have, want) {
				t.Errorf("%s is %+v, want %+v", key, have, want)
			}
			if m := s.Get(key).Meta(); !reflect.DeepEqual(m, object.MetaOf(want)) {
				t.Errorf("%s has the metadata %+v, want %+v", key, m, object.MetaOf(want))
			}
		}
	})
}
