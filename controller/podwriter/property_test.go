// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podwriter

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// The fates of a request.
const (
	goesWell   = "goes well"
	isRefused  = "is refused"
	fails      = "fails"                          // is not carried out, and the answer does not say so
	losesWrite = "is carried out without answer"  // the connection breaks after it
	isTooLate  = "meets a namespace that is gone" // no failure, no Event
)

// traffic decides the fate of each create and delete, and counts. Requests take a second of
// the bubble's time, so those that are sent together are in flight together.
type traffic struct {
	t     *rapid.T
	next  http.RoundTripper
	fates []string // of the writes, in the order in which they are sent

	mu       sync.Mutex
	inFlight int
	most     int
	good     int            // creates that have gone well, of this run
	failed   time.Time      // when the first request was sent that did not go well
	count    map[string]int // writes by fate
}

func (f *traffic) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPost && r.Method != http.MethodDelete {
		return f.next.RoundTrip(r)
	}
	fate := f.begin(r.Method)
	defer f.end(r.Method, fate)
	time.Sleep(time.Second)
	r = r.Clone(r.Context())
	r.Header.Set("Fate", fate)
	return f.next.RoundTrip(r)
}

func (f *traffic) begin(method string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	fate := goesWell
	if len(f.fates) > 0 {
		fate, f.fates = f.fates[0], f.fates[1:]
	}
	f.count[fate]++
	f.inFlight++
	f.most = max(f.most, f.inFlight)
	if method == http.MethodDelete {
		return fate
	}
	if f.inFlight > f.good+1 {
		f.t.Errorf("%d creates are in flight after %d have gone well", f.inFlight, f.good)
	}
	if !f.failed.IsZero() && time.Now().After(f.failed) {
		f.t.Error("a create is sent after one has failed")
	}
	if fate != goesWell && f.failed.IsZero() {
		f.failed = time.Now()
	}
	return fate
}

func (f *traffic) end(method, fate string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inFlight--
	if method == http.MethodPost && fate == goesWell {
		f.good++
	}
}

// run begins a run: the fates are those of its writes.
func (f *traffic) run(fates []string) {
	f.fates, f.most, f.good, f.failed, f.count = fates, 0, 0, time.Time{}, map[string]int{}
}

// answers has the server carry out the fates.
func (w *world) answers() {
	fate := func(q *fakeapi.Request) string { return q.HTTP.Header.Get("Fate") }
	w.server.Before(func(q *fakeapi.Request) *metav1.Status {
		switch fate(q) {
		case isRefused:
			return fakeapi.Forbidden("exceeded quota")
		case fails:
			return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: "etcd is away"}
		case isTooLate:
			status := fakeapi.Forbidden("it is being terminated")
			status.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}
			return status
		}
		return nil
	})
	w.server.LoseAnswer(func(q *fakeapi.Request) bool { return fate(q) == losesWrite })
}

// inTraffic returns a world whose writes meet the fates that f has.
func inTraffic(t *testing.T, f *traffic) *world {
	w := newWorld(t)
	config := w.server.Config()
	f.next = config.Transport
	config.Transport = f
	c, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	w.writer.pods = client.For[*corev1.Pod](c)
	w.answers()
	return w
}

// events counts the Events of a reason since the last call of the world's reset.
func (w *world) events(reason string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, text := range w.said {
		if strings.HasPrefix(text, reason+": ") {
			n++
		}
	}
	return n
}

// A controller wants a number of Pods, and runs until it has them. Its cache shows what it was
// told of, and what was created without an answer some runs later.
func TestThereIsOnePodForEachThatIsWanted(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		wanted := rapid.IntRange(1, 40).Draw(rt, "wanted")
		fates := rapid.SliceOfN(rapid.SampledFrom([]string{goesWell, goesWell, goesWell, isRefused, fails, losesWrite, isTooLate}), 0, 20)
		runs := rapid.SliceOfN(fates, 0, 6).Draw(rt, "runs")
		late := rapid.SliceOfN(rapid.Bool(), len(runs), len(runs)).Draw(rt, "late")
		synctest.Test(t, func(t *testing.T) {
			f := &traffic{t: rt}
			w := inTraffic(t, f)
			seen := map[string]bool{} // what the cache shows
			for i := 0; len(seen) < wanted; i++ {
				if i >= len(runs) || !late[i] {
					for _, key := range w.server.Keys() {
						seen[key] = true
					}
				}
				f.run(nil)
				if i < len(runs) {
					f.run(slices.Clone(runs[i]))
				}
				w.said = nil
				made, err := w.writer.Create(t.Context(), w.owner, slices.Repeat([]*corev1.Pod{w.pod()}, wanted-len(seen)), func(name string) bool {
					return seen[web.Namespace+"/"+name]
				})
				failures := f.count[isRefused] + f.count[fails] + f.count[losesWrite]
				if failures > 0 && f.count[isTooLate] == 0 && err == nil || failures == 0 && err != nil {
					rt.Fatalf("%d creates failed, and the error is %v", failures, err)
				}
				// A create that goes well may meet a Pod of an earlier, lost create.
				if good := w.events(SuccessfulCreate); good > f.count[goesWell] || len(made) < good || len(made) > f.count[goesWell] {
					rt.Fatalf("%d Pods and %d Events after %v", len(made), good, f.count)
				}
				if bad := w.events(FailedCreate); bad != failures {
					rt.Fatalf("%d Events of failures after %v", bad, f.count)
				}
				for _, pod := range made {
					seen[object.KeyOf(pod).String()] = true
				}
				if have := len(w.server.Keys()); have > wanted {
					rt.Fatalf("there are %d Pods, wanted are %d", have, wanted)
				}
			}
			if have := len(w.server.Keys()); have != wanted {
				rt.Fatalf("there are %d Pods, wanted are %d", have, wanted)
			}
		})
	})
}

// Some of the Pods that are deleted are gone already, and another has taken the name of some.
func TestExactlyThePodsThatAreGivenAreDeleted(t *testing.T) {
	const ( // what a Pod is when it is deleted
		there    = "there"
		gone     = "gone"
		replaced = "replaced"
	)
	rapid.Check(t, func(rt *rapid.T) {
		states := rapid.SliceOfN(rapid.SampledFrom([]string{there, there, gone, replaced}), 1, 100).Draw(rt, "states")
		fates := rapid.SliceOfN(rapid.SampledFrom([]string{goesWell, goesWell, isRefused, fails, losesWrite}), 0, 100).Draw(rt, "fates")
		synctest.Test(t, func(t *testing.T) {
			f := &traffic{t: rt}
			w := inTraffic(t, f)
			var pods []*corev1.Pod
			survivors := 0
			for i, state := range states {
				pod := w.pod()
				pod.Name, pod.UID, pod.Finalizers = fmt.Sprint("web-", i), types.UID(fmt.Sprint("uid-", i)), nil
				pods = append(pods, pod)
				if state == gone {
					continue
				}
				stored := pod.DeepCopy()
				if state == replaced {
					stored.UID = types.UID(fmt.Sprint("another-", i))
					survivors++
				}
				if err := w.server.Add(stored); err != nil {
					t.Fatal(err)
				}
			}
			w.said = nil
			f.run(fates)
			deleted, err := w.writer.Delete(t.Context(), w.owner, pods)
			if f.most > deletesAtOnce {
				rt.Errorf("%d deletes were in flight", f.most)
			}
			left, failed := survivors, 0
			for i, done := range deleted {
				is := w.server.Get(object.KeyOf(pods[i]))
				mine := is != nil && is.GetUID() == pods[i].UID
				if done && mine {
					rt.Errorf("Pod %s is there and reported as deleted", pods[i].Name)
				}
				if mine {
					left++
				}
				if !done {
					failed++
				}
			}
			if have := len(w.server.Keys()); have != left {
				rt.Errorf("%d Pods are left, want %d: another Pod was deleted by its name", have, left)
			}
			if (err != nil) != (failed > 0) || w.events(FailedDelete) != failed || f.count[isRefused]+f.count[fails] > failed {
				rt.Errorf("%d deletes failed, of %v: error %v, %d Events", failed, f.count, err, w.events(FailedDelete))
			}
		})
	})
}
