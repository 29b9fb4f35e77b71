// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package events_test

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

var eventsResource = object.Resource{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true}

// record has a recorder run, and stops it after use.
func record(t *testing.T, before func(*fakeapi.Request) *metav1.Status, flush time.Duration,
	use func(*events.Recorder)) (all []*eventsv1.Event, dropped uint64) {
	t.Helper()
	server := fakeapi.New().Serve(eventsResource)
	server.Before(before)
	c, err := client.New(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	r := events.NewRecorder(c, "example.com/test", "test-1", slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.Run(ctx, flush) }()
	use(r)
	cancel()
	<-done
	dropped = r.Dropped()
	server.Before(nil)
	all, _, err = client.For[*eventsv1.Event](c).List(t.Context(), client.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	return all, dropped
}

func TestEventsAreWrittenCountedAndCutBetweenCharacters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		about := pod("web")
		about.UID = "u"
		all, dropped := record(t, nil, time.Minute, func(r *events.Recorder) {
			for range 4 {
				r.Warning(about, "FailedCreate", "Create", "no: %s", strings.Repeat("ü", 1000))
			}
			synctest.Wait()
			r.Normal(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, "Seen", "See", "cluster-scoped")
		})
		if len(all) != 2 {
			t.Fatalf("%d events, want 2", len(all))
		}
		e, other := all[0], all[1]
		if e.Reason != "FailedCreate" {
			e, other = other, e
		}
		if e.Series == nil || e.Series.Count != 4 || e.Type != corev1.EventTypeWarning || e.Action != "Create" || e.Regarding.UID != "u" ||
			e.Namespace != "ns" || e.ReportingController != "example.com/test" || e.ReportingInstance != "test-1" || e.EventTime.IsZero() {
			t.Errorf("written: %+v", e)
		}
		if !utf8.ValidString(e.Note) || strings.ContainsRune(e.Note, utf8.RuneError) || len(e.Note) > 1024 || !strings.HasSuffix(e.Note, "ü...") {
			t.Errorf("a note of %d bytes that ends in %q", len(e.Note), e.Note[len(e.Note)-8:])
		}
		if other.Namespace != "default" {
			t.Errorf("the event of a Node is in namespace %q", other.Namespace)
		}
		if dropped != 1 { // the third is counted with the fourth
			t.Errorf("%d dropped", dropped)
		}
	})
}

// The server refuses an update of an Event that changes its note.
// Source: k8s.io/kubernetes/pkg/apis/core/validation, ValidateEventUpdate.
func TestTheCountOfCombinedEventsIsWrittenWithoutAnotherNote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, dropped := record(t, nil, time.Minute, func(r *events.Recorder) {
			for i := range 14 { // ten of their own, and four combined ones
				r.Normal(pod("web"), "SuccessfulCreate", "Create", "created Pod %d", i)
				synctest.Wait()
			}
		})
		var combined []*eventsv1.Event
		for _, e := range all {
			if strings.HasPrefix(e.Note, "(combined from similar events): ") {
				combined = append(combined, e)
			}
		}
		if len(all) != 11 || len(combined) != 1 {
			t.Fatalf("%d Events are combined, of %d", len(combined), len(all))
		}
		e := combined[0]
		if e.Note != "(combined from similar events): created Pod 10" || e.Series == nil || e.Series.Count != 4 {
			t.Errorf("the combined Event says %q, and counts %+v", e.Note, e.Series)
		}
		if dropped != 1 { // the third is counted with the fourth
			t.Errorf("%d dropped", dropped)
		}
	})
}

func TestPlannedEventsAreRecordedInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var planned events.List
		planned.Warning("FailedCreate", "Create", "no %s", "quota")
		planned.Normal("Scaled", "Scale", "from %d to %d", 1, 2)
		if want := (events.Planned{Reason: "Scaled", Action: "Scale", Note: "from 1 to 2"}); planned[1] != want {
			t.Errorf("planned %+v, want %+v", planned[1], want)
		}
		all, dropped := record(t, nil, time.Minute, func(r *events.Recorder) {
			r.Record(pod("web"), planned...)
			r.Record(pod("web"))
		})
		slices.SortFunc(all, func(a, b *eventsv1.Event) int { return cmp.Compare(a.ResourceVersion, b.ResourceVersion) })
		var have []string
		for _, e := range all {
			have = append(have, strings.Join([]string{e.Type, e.Reason, e.Action, e.Note, e.Regarding.Name}, "|"))
		}
		want := []string{"Warning|FailedCreate|Create|no quota|web", "Normal|Scaled|Scale|from 1 to 2|web"}
		if !slices.Equal(have, want) || dropped != 0 {
			t.Errorf("recorded %q, %d dropped; want %q", have, dropped, want)
		}
	})
}

func TestEventsThatWaitAreFlushedAtTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		flush            time.Duration
		written, dropped int
	}{"in time": {time.Minute, 3, 0}, "not in time": {time.Second, 0, 3}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := func(q *fakeapi.Request) *metav1.Status {
					select {
					case <-time.After(5 * time.Second):
						return nil
					case <-q.HTTP.Context().Done():
						return fakeapi.Unavailable(-1)
					}
				}
				all, dropped := record(t, slow, c.flush, func(r *events.Recorder) {
					began := time.Now()
					for _, name := range []string{"a", "b", "c"} {
						r.Normal(pod(name), "Seen", "See", "here")
					}
					if waited := time.Since(began); waited > 0 {
						t.Errorf("recording took %s", waited)
					}
					synctest.Wait() // the first write is under way
				})
				if len(all) != c.written || int(dropped) != c.dropped {
					t.Errorf("%d written, %d dropped; want %d and %d", len(all), dropped, c.written, c.dropped)
				}
			})
		})
	}
}

// gadget is a type that no scheme knows.
type gadget struct{ corev1.Pod }

func TestTheKindOfAnEventIsThatOfItsObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bare := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "bare"}}
		typed := *bare.DeepCopy()
		typed.Name = "typed"
		typed.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"})
		all, dropped := record(t, nil, time.Minute, func(r *events.Recorder) {
			r.Normal(pod("web"), "Seen", "See", "a Pod")
			r.Normal(&typed, "Seen", "See", "only metadata, with a kind")
			r.Normal(&bare, "Seen", "See", "only metadata")
			r.Normal(&gadget{}, "Seen", "See", "of no scheme")
		})
		kinds := map[string]string{}
		for _, e := range all {
			kinds[e.Regarding.Name] = e.Regarding.APIVersion + " " + e.Regarding.Kind
		}
		if want := map[string]string{"web": "v1 Pod", "typed": "example.com/v1 Gadget"}; !maps.Equal(kinds, want) {
			t.Errorf("the kinds are %v, want %v", kinds, want)
		}
		if dropped != 2 {
			t.Errorf("%d dropped, want the 2 whose kind is not known", dropped)
		}
	})
}

func TestARecorderWithoutALoggerUsesTheDefaultOne(t *testing.T) {
	c, err := client.New(&rest.Config{Host: "http://in-memory"})
	if err != nil {
		t.Fatal(err)
	}
	events.NewRecorder(c, "web", "host-1", nil) // it used to panic
}
