// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package protection_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/controller/protection"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

const (
	ours   = "example.com/in-use"
	theirs = "example.com/theirs"
)

// scene is a server with ConfigMaps, and a controller that protects them.
type scene struct {
	t       *testing.T
	server  *fakeapi.Resource
	events  *fakeapi.Resource
	maps    client.Typed[*corev1.ConfigMap]
	enqueue func()
	record  *runs.Record
	log     bytes.Buffer // read when the controller is idle

	mu    sync.Mutex
	users []string
	err   error
}

func start(t *testing.T, change ...func(*protection.Protection[*corev1.ConfigMap])) *scene {
	t.Helper()
	s := &scene{t: t, server: fakeapi.New().Serve(object.Resource{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true})}
	s.events = s.server.Serve(object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true})
	api, err := client.New(s.server.Config())
	if err != nil {
		t.Fatal(err)
	}
	s.maps = client.For[*corev1.ConfigMap](api)
	factory := cache.NewFactory(api, slog.New(slog.DiscardHandler))
	objects := cache.Informer[*corev1.ConfigMap](factory)
	recorder := events.NewRecorder(api, "protection", "test", nil)
	p := &protection.Protection[*corev1.ConfigMap]{Objects: objects, Finalizer: ours, Recorder: recorder, UsedBy: func(context.Context, *corev1.ConfigMap) ([]string, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.users, s.err
	}}
	for _, f := range change {
		f(p)
	}
	if s.record, err = runs.New(1 << 20); err != nil {
		t.Fatal(err)
	}
	c := controller.New("protection", p.Reconcile, controller.For(objects), controller.Runs(s.record),
		controller.Log(slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
	s.enqueue = func() { c.Queue().Add(key); settle() }
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = factory.Run(ctx) })
	running.Go(func() { recorder.Run(ctx, 0) })
	running.Go(func() {
		if err := c.Run(ctx); err != nil {
			t.Errorf("the controller: %v", err)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return s
}

// settle waits until nothing happens any more. The time of the bubble moves on, so that the record
// can tell which run was the last one.
func settle() {
	synctest.Wait()
	time.Sleep(time.Second)
}

var key = object.Key{Namespace: "ns", Name: "it"}

// create creates the object with a finalizer of others.
func (s *scene) create() {
	s.t.Helper()
	if _, err := s.maps.Create(s.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: key.Name, Finalizers: []string{theirs},
	}}); err != nil {
		s.t.Fatal(err)
	}
	settle()
}

func (s *scene) delete() {
	s.t.Helper()
	if err := s.maps.Delete(s.t.Context(), key); err != nil {
		s.t.Fatal(err)
	}
	settle()
}

// removeTheirs has the other client remove its finalizer.
func (s *scene) removeTheirs() {
	s.t.Helper()
	o, err := s.maps.Get(s.t.Context(), key)
	if err != nil {
		s.t.Fatal(err)
	}
	o.Finalizers = nil
	if _, err := s.maps.Update(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
	settle()
}

// notes returns what the Events say.
func (s *scene) notes() (notes []string) {
	s.t.Helper()
	all, err := fakeapi.Objects[*eventsv1.Event](s.events)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range all {
		if e.Reason == protection.InUse {
			notes = append(notes, e.Note)
		}
	}
	return notes
}

func (s *scene) use(err error, users ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users, s.err = users, err
}

// reasons returns those of the last run.
func (s *scene) reasons() (all []controller.Reason) {
	for _, run := range s.record.Present(runs.Query{}) {
		all = append(all, run.Reasons...)
	}
	return all
}

// want compares the finalizers of the object.
func (s *scene) want(when string, finalizers ...string) {
	s.t.Helper()
	o, err := s.maps.Get(s.t.Context(), key)
	if err != nil {
		s.t.Fatal(err)
	}
	if !slices.Equal(o.Finalizers, finalizers) {
		s.t.Errorf("%s the finalizers are %v, want %v", when, o.Finalizers, finalizers)
	}
}

func TestAnObjectStaysWhileItIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.create()
		s.want("after the creation", theirs, ours)
		s.use(nil, "Pod a", "Pod b", "Pod c", "Pod d", "Pod e")
		s.delete()
		s.want("while it is used", theirs, ours)
		const why = "it keeps the finalizer example.com/in-use, because it is in use by Pod a, Pod b, Pod c and 2 more"
		if log := s.log.String(); !strings.Contains(log, `msg="not removed yet"`) || !strings.Contains(log, why) {
			t.Errorf("the log does not say why: %s", log)
		}
		if reasons := s.reasons(); len(reasons) != 1 || reasons[0].Code != protection.InUse || reasons[0].Sentence() != why {
			t.Errorf("the record says %q, want %q", reasons, why)
		}
		s.use(nil)
		s.enqueue()
		s.want("after the last user", theirs)
		if reasons := s.reasons(); len(reasons) > 0 {
			t.Errorf("the record still says %q", reasons)
		}
		s.enqueue()
		s.want("after another run", theirs)
	})
}

func TestAnObjectStaysWhileItsUsersAreNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		s.create()
		s.use(errors.New("the Pods cannot be listed"))
		s.delete()
		s.want("while its users are not known", theirs, ours)
	})
}

// The Event is recorded once, however often the object is judged, and again for another object of
// the name.
func TestOneEventNamesTheUsersOfAnObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t)
		const note = "Not deleted yet: it keeps the finalizer example.com/in-use, because it is in use by Pod a, Pod b"
		for objects := 1; objects <= 2; objects++ {
			s.create()
			s.use(nil, "Pod a", "Pod b")
			s.delete()
			s.use(nil, "Pod b")
			s.enqueue()
			s.use(nil)
			s.enqueue()
			s.removeTheirs()
			if got, want := s.notes(), slices.Repeat([]string{note}, objects); !slices.Equal(got, want) {
				t.Errorf("after %d objects the Events say %q, want %q", objects, got, want)
			}
		}
	})
}

func TestAFinalizerThatIsOnlyRemovedIsNotAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, func(p *protection.Protection[*corev1.ConfigMap]) { p.RemoveOnly = true })
		s.create()
		s.want("after the creation", theirs)
	})
}
