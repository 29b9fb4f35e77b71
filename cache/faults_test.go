// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// frail is a transform that fails for the Pods that somebody names. It says on which node
// it saw a Pod.
type frail struct {
	mu    sync.Mutex
	fails map[string]string // by name: how
	calls int
}

func (f *frail) set(name, how string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fails == nil {
		f.fails = map[string]string{}
	}
	f.fails[name] = how
}

func (f *frail) transform(p *corev1.Pod) (*corev1.Pod, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	how := f.fails[p.Name]
	if p.Labels["bad"] != "" {
		how = "error"
	}
	switch how {
	case "error":
		return nil, errors.New("cannot read its label")
	case "panic":
		panic("oh")
	case "nothing":
		return nil, nil
	case "renames":
		p.Name = "other"
	case "reversions":
		p.ResourceVersion = ""
	}
	p.Spec = corev1.PodSpec{}
	return p, nil
}

// change changes a Pod at the server.
func (w *world) change(t *testing.T, c *client.Client, name string, change func(*corev1.Pod)) {
	t.Helper()
	p, err := client.For[*corev1.Pod](c).Get(t.Context(), object.Key{Namespace: "team-a", Name: name})
	if err != nil {
		t.Fatal(err)
	}
	change(p)
	if _, err := client.For[*corev1.Pod](c).Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

func frailWorld(t *testing.T, test func(t *testing.T, w *world, c *client.Client, f *frail, informer cache.SharedInformer[*corev1.Pod], told *notes)) {
	inWorld(t, func(t *testing.T, w *world) {
		c, err := client.New(w.server.Config())
		if err != nil {
			t.Fatal(err)
		}
		var f frail
		informer := cache.Informer[*corev1.Pod](w.factory, cache.Transform(f.transform))
		var told notes
		if _, err := informer.AddHandler(func(e cache.Event[*corev1.Pod]) { told.add(fmt.Sprint(e.Kind, " ", e.Key().Name)) }, cache.HandlerOptions{EveryStep: true}); err != nil {
			t.Fatal(err)
		}
		test(t, w, c, &f, informer, &told)
	})
}

func labelled(value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"bad": value, "v": "x" + value} }
}

func holds(informer cache.SharedInformer[*corev1.Pod]) string {
	var all []string
	for key, item := range informer.All() {
		all = append(all, key.Name+" "+item.Meta().Labels.Get("v"))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func faultOf(informer cache.SharedInformer[*corev1.Pod]) string {
	s := informer.Handle().Status()
	var all []string
	for _, f := range s.Faults {
		all = append(all, f.Key.Name+": "+f.Err.Error())
	}
	return fmt.Sprint(s.Faulty, " ", strings.Join(all, "; "))
}

// An object that a transform fails for keeps its last good state, and no other object waits
// for it.
func TestAnObjectThatATransformFailsForKeepsItsLastGoodStateAndHoldsUpNoOther(t *testing.T) {
	for how, says := range map[string]string{
		"error": "cannot read its label", "panic": "the transform panicked: oh", "nothing": "the transform returned no object",
		"renames":    "the transform changed namespace, name, UID or resourceVersion",
		"reversions": "the transform changed namespace, name, UID or resourceVersion",
	} {
		t.Run(how, func(t *testing.T) {
			frailWorld(t, func(t *testing.T, w *world, c *client.Client, f *frail, informer cache.SharedInformer[*corev1.Pod], told *notes) {
				w.add(t, "a", func(p *corev1.Pod) { p.Labels = map[string]string{"v": "1"} })
				w.add(t, "b")
				defer w.run(t)()
				told.take()
				f.set("a", how)
				w.change(t, c, "a", func(p *corev1.Pod) { p.Labels["v"] = "2" })
				w.change(t, c, "b", func(p *corev1.Pod) { p.Labels = map[string]string{"v": "5"} })
				w.add(t, "c")
				want(t, "store", holds(informer), "a 1, b 5, c ")
				want(t, "told", told.take(), "Added c Updated b")
				want(t, "faults", faultOf(informer), "1 a: "+says)
				if err := informer.Trouble(); err == nil || !strings.Contains(err.Error(), "team-a/a") || !strings.Contains(err.Error(), says) {
					t.Errorf("trouble: %v", err)
				}
				var page strings.Builder
				if err := w.factory.WriteStatus(&page); err != nil || !strings.Contains(page.String(), "cannot use team-a/a at version") || !strings.Contains(page.String(), says) {
					t.Errorf("%v, the page:\n%s", err, &page)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				want(t, "store after an hour", holds(informer), "a 1, b 5, c ")
				if n := strings.Count(w.log.String(), "an object cannot be used"); n != 1 || !strings.Contains(w.log.String(), "object=team-a/a") {
					t.Errorf("the log says so %d times: %s", n, w.log)
				}
				// The transform works again, and the object has not changed since.
				f.set("a", "")
				time.Sleep(time.Minute)
				synctest.Wait()
				want(t, "store", holds(informer), "a 2, b 5, c ")
				want(t, "told", told.take(), "Updated a")
				want(t, "faults", faultOf(informer), "0 ")
				if err := informer.Trouble(); err != nil {
					t.Errorf("trouble: %v", err)
				}
			})
		})
	}
}

func TestAnObjectThatATransformFailedForRecoversWithItsNextState(t *testing.T) {
	frailWorld(t, func(t *testing.T, w *world, c *client.Client, _ *frail, informer cache.SharedInformer[*corev1.Pod], told *notes) {
		w.add(t, "a", labelled("")) // good
		defer w.run(t)()
		told.take()
		w.change(t, c, "a", labelled("1"))
		w.change(t, c, "a", labelled("2"))
		want(t, "faults", faultOf(informer), "1 a: cannot read its label")
		want(t, "store", holds(informer), "a x")
		w.change(t, c, "a", func(p *corev1.Pod) { p.Labels = map[string]string{"v": "3"} })
		want(t, "store", holds(informer), "a 3")
		want(t, "told", told.take(), "Updated a")
		want(t, "faults", faultOf(informer), "0 ")
		// The old states are not tried again.
		time.Sleep(time.Hour)
		synctest.Wait()
		want(t, "store", holds(informer), "a 3")
		want(t, "told later", told.take(), "")
	})
}

func TestAFaultyObjectThatGoesOrIsReplacedIsNotKept(t *testing.T) {
	frailWorld(t, func(t *testing.T, w *world, c *client.Client, _ *frail, informer cache.SharedInformer[*corev1.Pod], told *notes) {
		pods := client.For[*corev1.Pod](c)
		at := func(name string) object.Key { return object.Key{Namespace: "team-a", Name: name} }
		w.add(t, "goes", labelled(""))
		w.add(t, "replaced", labelled(""))
		defer w.run(t)()
		told.take()
		w.change(t, c, "goes", labelled("1"))
		if err := pods.Delete(t.Context(), at("goes")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want(t, "told", told.take(), "Deleted goes")
		if err := pods.Delete(t.Context(), at("replaced")); err != nil {
			t.Fatal(err)
		}
		w.add(t, "replaced", labelled("1"))
		want(t, "told", told.take(), "Deleted replaced")
		w.add(t, "brief", labelled("1"))
		if err := pods.Delete(t.Context(), at("brief")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want(t, "told", told.take(), "")
		want(t, "store", holds(informer), "")
		want(t, "faults", faultOf(informer), "1 replaced: cannot read its label")
	})
}

// A list has it as well: from the first one on, and where a server has forgotten a watch.
func TestAListIsWholeThoughATransformFailsForAnObjectOfIt(t *testing.T) {
	frailWorld(t, func(t *testing.T, w *world, c *client.Client, _ *frail, informer cache.SharedInformer[*corev1.Pod], told *notes) {
		for n := range 13 {
			w.add(t, fmt.Sprint("bad-", 10+n), labelled("1"))
		}
		w.add(t, "good")
		stop := w.run(t)
		if err := informer.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(t, "store", holds(informer), "good ")
		if s := informer.Handle().Status(); s.Faulty != 13 || len(s.Faults) != 10 || s.Faults[9].Key.Name != "bad-19" {
			t.Errorf("%d faults, shown %v", s.Faulty, s.Faults)
		}
		w.change(t, c, "bad-10", func(p *corev1.Pod) { p.Labels = nil })
		want(t, "store", holds(informer), "bad-10 , good ")
		told.take()
		stop()
	})
}

// What fails for an object that the cache has, in a list that is read again.
func TestARelistKeepsTheLastGoodStateOfWhatATransformFailsFor(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.add(t, "a", labelled(""))
		w.add(t, "b")
		line := &cuttable{to: w.server}
		c, err := client.New(&rest.Config{Host: "http://in-memory", Transport: line})
		if err != nil {
			t.Fatal(err)
		}
		w.factory = cache.NewFactory(c, nil)
		var f frail
		informer := cache.Informer[*corev1.Pod](w.factory, cache.Transform(f.transform))
		var expired atomic.Bool
		w.server.Before(func(q *fakeapi.Request) *metav1.Status {
			if q.Verb != "watch" || q.HTTP.URL.Query().Get("sendInitialEvents") != "" || !expired.CompareAndSwap(true, false) {
				return nil
			}
			pods := client.For[*corev1.Pod](c) // nobody watches now
			for _, name := range []string{"a", "b"} {
				p, err := pods.Get(q.HTTP.Context(), object.Key{Namespace: "team-a", Name: name})
				if err == nil {
					labelled("1")(p)
					_, err = pods.Update(q.HTTP.Context(), p)
				}
				if err != nil {
					t.Error(err)
				}
			}
			return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGone, Reason: metav1.StatusReasonExpired}
		})
		defer w.run(t)()
		want(t, "store", holds(informer), "a x, b ")
		expired.Store(true)
		line.cut()
		time.Sleep(time.Minute)
		synctest.Wait()
		want(t, "store", holds(informer), "a x, b ")
		want(t, "faults", faultOf(informer), "2 a: cannot read its label; b: cannot read its label")
	})
}
