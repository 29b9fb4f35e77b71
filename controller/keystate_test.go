// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/workqueue"
)

// While the watch lags, the state of a key names the own write that its next run waits for, and since when. Afterwards the
// key is idle.
func TestTheStateOfAKeyNamesItsOwnUnseenWrite(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.add("target")
		synctest.Wait()
		began := time.Now()
		w := b.writing(func(ctx context.Context, pods client.Typed[*corev1.Pod]) error {
			patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]string{"a": "b"}}})
			if err == nil {
				_, err = pods.Patch(ctx, key("target"), patch)
			}
			return err
		}, func() {})
		defer w.stop()
		time.Sleep(time.Minute)
		synctest.Wait()
		s, ok := w.KeyState(key("parent"))
		if !ok || s.State != runs.StateHeld || s.Unseen == nil || s.Since == nil || !s.Since.Equal(began) || !s.Requested {
			t.Fatalf("the state is %+v, %v; want one that is held since %v and has been requested again", s, ok, began)
		}
		if u := s.Unseen; u.Verb != "patch" || u.Object.String() != "Pod ns/target" || u.Kind != "pods" || u.Version == "" || u.Lookup {
			t.Errorf("the write is %+v, want the patch of Pod ns/target", u)
		}
		b.line.to().HoldWatches(false)
		synctest.Wait()
		if s, ok := w.KeyState(key("parent")); !ok || s.State != runs.StateIdle || s.Unseen != nil {
			t.Errorf("afterwards the state is %+v, %v; want an idle one", s, ok)
		}
		b.line.set(func(l *line) { l.dead = true })
		time.Sleep(time.Second)
		synctest.Wait()
		if s, _ := w.KeyState(key("parent")); len(s.Informers) != 1 || s.Informers[0].Kind != "pods" || s.Informers[0].Trouble == "" || s.Informers[0].Heard == nil {
			t.Errorf("without a server the state is %+v, want an informer of pods that is not current", s)
		}
	})
}

// The state of a key says how many attempts have failed and when the back-off ends, and whether the key waits for a worker.
func TestTheStateOfAKeyShowsItsPlace(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.add("first", "second")
		synctest.Wait()
		gate := make(chan struct{})
		c := controller.New("test", func(_ context.Context, req controller.Request) (controller.Result, error) {
			switch req.Key.Name {
			case "first":
				<-gate
			case "parent":
				return controller.Result{}, errors.New("it fails")
			}
			return controller.Result{}, nil
		}, controller.For(b.pods), b.logger())
		defer b.start(c)()
		time.Sleep(time.Hour)
		synctest.Wait() // the only worker has "first"
		states := map[string]runs.KeyState{}
		for _, name := range []string{"first", "second", "parent", "other"} {
			s, ok := c.KeyState(key(name))
			if !ok || s.Controller != "test" || s.Key != "ns/"+name || s.Object.String() != "Pod ns/"+name {
				t.Errorf("the state of %s is %+v, %v", name, s, ok)
			}
			states[name] = s
		}
		if s := states["first"]; s.State != runs.StateRunning || s.Since == nil {
			t.Errorf("the first key has %+v, want a running one", s)
		}
		if s := states["other"]; s.State != runs.StateIdle {
			t.Errorf("another key has %+v, want an idle one", s)
		}
		close(gate)
		synctest.Wait()
		if s, _ := c.KeyState(key("parent")); s.State != runs.StateDelayed || s.Failures == 0 || s.Until == nil || !s.Until.After(time.Now()) {
			t.Errorf("the key whose runs fail has %+v, want the end of its back-off", s)
		}
		_, ok := controller.NewKeyed("words", func(context.Context, controller.RequestOf[string]) (controller.Result, error) {
			return controller.Result{}, nil
		}).KeyState(key("first"))
		if ok {
			t.Error("a loop over words has the state of an object")
		}
		uids := controller.NewKeyed("collector", func(context.Context, controller.RequestOf[types.UID]) (controller.Result, error) {
			return controller.Result{}, nil
		})
		uids.Queue().AddWith(workqueue.Add{}, "u-1")
		if s, ok := uids.UIDState("u-1"); !ok || s.State != runs.StateReady || s.Key != "u-1" || s.Object.UID != "u-1" {
			t.Errorf("by its UID, an object that waits has %+v, %v", s, ok)
		}
		if s, ok := uids.UIDState("u-2"); !ok || s.State != runs.StateIdle {
			t.Errorf("by its UID, an object without a key has %+v, %v", s, ok)
		}
		_, none := uids.UIDState("")
		_, byName := uids.KeyState(key("first"))
		if _, byUID := c.UIDState("u-1"); none || byName || byUID {
			t.Error("a loop has a state of an object that its keys do not name")
		}
	})
}
