// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/finalizer"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
	"github.com/setpoint-io/setpoint/workqueue"
)

// writer runs a controller whose first run for ns/parent writes, and which notes what
// each run saw.
type writer struct {
	*controller.Controller
	runs   []controller.Request
	began  []time.Time
	stop   func()
	failed error
}

// writing runs write in the first run, with watches held back from before it, and asks
// for a second run at once.
func (b *bubble) writing(write func(context.Context, client.Typed[*corev1.Pod]) error, see func(), options ...controller.Option) *writer {
	b.t.Helper()
	w := &writer{}
	w.Controller = controller.New("test", func(ctx context.Context, req controller.Request) (controller.Result, error) {
		if req.Key != key("parent") {
			return controller.Result{}, nil
		}
		w.runs = append(w.runs, req)
		w.began = append(w.began, time.Now())
		if len(w.runs) > 1 {
			see()
			return controller.Result{}, nil
		}
		b.line.to().HoldWatches(true)
		w.failed = write(ctx, client.For[*corev1.Pod](b.client))
		w.Queue().Add(req.Key)
		return controller.Result{}, nil
	}, append([]controller.Option{controller.For(b.pods), b.logger()}, options...)...)
	w.stop = b.start(w.Controller)
	return w
}

func TestKeyIsHeldUntilTheInformerShowsWhatWasWritten(t *testing.T) {
	type pods = client.Typed[*corev1.Pod]
	change := func(ctx context.Context, p pods) (*corev1.Pod, error) { return p.Get(ctx, key("target")) }
	here := func(b *bubble, name string) *corev1.Pod {
		o, err := b.pods.Get(key(name))
		if err != nil {
			return nil
		}
		return o
	}
	for _, c := range []struct {
		name  string
		write func(context.Context, pods) error
		seen  func(*bubble) bool
	}{
		{"create", func(ctx context.Context, p pods) error {
			_, err := p.Create(ctx, pod("child"))
			return err
		}, func(b *bubble) bool { return here(b, "child") != nil }},
		{"update", func(ctx context.Context, p pods) error {
			o, err := change(ctx, p)
			if err == nil {
				o.Labels = map[string]string{"a": "b"}
				_, err = p.Update(ctx, o)
			}
			return err
		}, func(b *bubble) bool { return here(b, "target").Labels["a"] == "b" }},
		{"patch", func(ctx context.Context, p pods) error {
			patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}})
			if err == nil {
				_, err = p.Patch(ctx, key("target"), patch)
			}
			return err
		}, func(b *bubble) bool { return here(b, "target").Labels["a"] == "b" }},
		{"apply", func(ctx context.Context, p pods) error {
			_, err := p.Apply(ctx, key("target"), "test", map[string]any{"apiVersion": "v1", "kind": "Pod",
				"metadata": map[string]any{"name": "target", "labels": map[string]any{"a": "b"}}})
			return err
		}, func(b *bubble) bool { return here(b, "target").Labels["a"] == "b" }},
		{"status", func(ctx context.Context, p pods) error {
			o, err := change(ctx, p)
			if err == nil {
				o.Status.Phase = corev1.PodFailed
				_, err = p.UpdateStatus(ctx, o)
			}
			return err
		}, func(b *bubble) bool { return here(b, "target").Status.Phase == corev1.PodFailed }},
		{"finalizer added", func(ctx context.Context, p pods) error {
			o, err := change(ctx, p)
			if err == nil {
				_, err = finalizer.Add(ctx, p, o, "example.com/f")
			}
			return err
		}, func(b *bubble) bool { return len(here(b, "target").Finalizers) == 1 }},
		{"finalizer removed", func(ctx context.Context, p pods) error {
			o, err := p.Get(ctx, key("final"))
			if err == nil {
				err = finalizer.Remove(ctx, p, o, "example.com/f")
			}
			return err
		}, func(b *bubble) bool { return len(here(b, "final").Finalizers) == 0 }},
		// The informer shows that it is being deleted, before and after. The answer has the version from before.
		{"last finalizer of one that is being deleted", func(ctx context.Context, p pods) error {
			o, err := p.Get(ctx, key("going"))
			if err == nil {
				err = finalizer.Remove(ctx, p, o, "example.com/f")
			}
			return err
		}, func(b *bubble) bool { return here(b, "going") == nil }},
		{"delete", func(ctx context.Context, p pods) error { return p.Delete(ctx, key("target")) },
			func(b *bubble) bool { return here(b, "target") == nil }},
		{"deletecollection", func(ctx context.Context, p pods) error {
			return p.DeleteCollection(ctx, client.Selection{Namespace: "ns"})
		}, func(b *bubble) bool { return here(b, "target") == nil && here(b, "final").DeletionTimestamp != nil }},
		{"create and delete", func(ctx context.Context, p pods) error {
			if _, err := p.Create(ctx, pod("child")); err != nil {
				return err
			}
			return p.Delete(ctx, key("child"))
		}, func(b *bubble) bool { return here(b, "child") == nil }},
		{"delete and create", func(ctx context.Context, p pods) error {
			if err := p.Delete(ctx, key("target")); err != nil {
				return err
			}
			_, err := p.Create(ctx, pod("target"))
			return err
		}, func(b *bubble) bool { return here(b, "target").UID == b.line.to().UID(key("target")) }},
	} {
		for _, lost := range []bool{false, true} {
			if lost && strings.Contains(c.name, " and ") {
				continue // of two writes the second comes only after the first is known
			}
			t.Run(fmt.Sprintf("%s, answer lost %v", c.name, lost), func(t *testing.T) {
				inBubble(t, func(t *testing.T, b *bubble) {
					b.add("target", "final", "going")
					b.patch("final", map[string]any{"finalizers": []string{"example.com/f"}})
					b.patch("going", map[string]any{"finalizers": []string{"example.com/f"}})
					if err := client.For[*corev1.Pod](b.client).Delete(t.Context(), key("going")); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					if lost {
						b.line.set(func(l *line) { l.lose = func(r *http.Request) bool { return r.Method != http.MethodGet } })
					}
					var saw bool
					w := b.writing(c.write, func() { saw = c.seen(b) })
					defer w.stop()
					time.Sleep(time.Minute) // in which the server is asked
					synctest.Wait()
					if len(w.runs) != 1 || len(w.Waiting()) != 1 {
						t.Fatalf("%d runs, waiting for %v; want one, and its write (%v) waited for", len(w.runs), w.Waiting(), w.failed)
					}
					b.line.to().HoldWatches(false)
					synctest.Wait()
					if len(w.runs) < 2 || !saw || len(w.Waiting()) != 0 {
						t.Errorf("after the informer was told: %d runs, the last saw the write: %v, waiting for %v", len(w.runs), saw, w.Waiting())
					}
				})
			})
		}
	}
}

func TestNameThatIsTakenAgainAfterADeleteHoldsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		b.add("target")
		synctest.Wait()
		before := b.line.to().UID(key("target"))
		w := b.writing(func(ctx context.Context, p client.Typed[*corev1.Pod]) error {
			if err := p.Delete(ctx, key("target")); err != nil {
				return err
			}
			b.add("target") // by somebody else
			b.line.to().HoldWatches(false)
			synctestSettles()
			return nil
		}, func() {
			if o, err := b.pods.Get(key("target")); err != nil || o.UID == before {
				t.Errorf("the second run sees the Pod that was deleted (%v)", err)
			}
		})
		defer w.stop()
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if len(w.runs) != 2 {
			t.Errorf("%d runs, waiting for %v", len(w.runs), w.Waiting())
		}
	})
}

// synctestSettles gives what others do its time, from within a bubble's goroutine that is
// not alone in calling synctest.Wait.
func synctestSettles() { time.Sleep(time.Microsecond) }

// A server that is set back to an older state has lost versions for which keys wait, and
// does not come to them.
func TestWriteThatARestoredServerHasLostIsNotWaitedFor(t *testing.T) {
	for _, c := range []struct {
		name  string
		write func(context.Context, client.Typed[*corev1.Pod]) error
	}{
		{"create", func(ctx context.Context, p client.Typed[*corev1.Pod]) error {
			_, err := p.Create(ctx, pod("child"))
			return err
		}},
		{"update", func(ctx context.Context, p client.Typed[*corev1.Pod]) error {
			o, err := p.Get(ctx, key("target"))
			if err == nil {
				o.Labels = map[string]string{"a": "b"}
				_, err = p.Update(ctx, o)
			}
			return err
		}},
		{"delete", func(ctx context.Context, p client.Typed[*corev1.Pod]) error { return p.Delete(ctx, key("target")) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				b.add("target")
				synctest.Wait()
				w := b.writing(c.write, func() {
					if all := names(b.pods); len(all) != 2 || !all["target"] {
						t.Errorf("the second run sees %v", all)
					}
				})
				defer w.stop()
				if len(w.Waiting()) != 1 {
					t.Fatalf("waiting for %v; want the write (%v)", w.Waiting(), w.failed)
				}
				// The backup has the same two objects, at the same versions, and nothing after.
				backup := fakeapi.New().Serve(podsResource)
				for _, name := range []string{"parent", "target"} {
					if err := backup.Add(pod(name)); err != nil {
						t.Fatal(err)
					}
				}
				backup.Before(func(q *fakeapi.Request) *metav1.Status {
					if v := q.HTTP.URL.Query().Get("resourceVersion"); (q.Verb == "watch" || q.Verb == "list") && len(v) > 0 && v > "2" {
						return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusGatewayTimeout, Reason: metav1.StatusReasonTimeout,
							Message: "Too large resource version", Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}}}
					}
					return nil
				})
				b.line.set(func(l *line) { l.server = backup })
				time.Sleep(time.Minute)
				synctest.Wait()
				if len(w.runs) != 2 || len(w.Waiting()) != 0 || len(w.runs[len(w.runs)-1].Unseen) != 0 {
					t.Errorf("%d runs, waiting for %v", len(w.runs), w.Waiting())
				}
			})
		})
	}
}

// What an informer does not show for minutes costs one run in each bound, which knows.
func TestKeyIsLetGoAtTheBoundAndTheRunIsToldWhatIsUnseen(t *testing.T) {
	for name, broken := range map[string]func(*line){
		"the watch is broken":                     func(l *line) { l.noWatches = true },
		"nothing can be asked and an answer lost": func(l *line) { l.dead = true },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				const bound = 10 * time.Minute
				w := b.writing(func(ctx context.Context, p client.Typed[*corev1.Pod]) error {
					b.line.set(func(l *line) { l.lose = func(r *http.Request) bool { return l.dead } })
					if strings.HasPrefix(name, "nothing") {
						b.line.mu.Lock()
						b.line.lose = func(r *http.Request) bool { return r.Method == http.MethodPost }
						b.line.mu.Unlock()
					}
					_, err := p.Create(ctx, pod("child"))
					b.line.set(broken)
					return err
				}, func() {}, controller.WriteWait(bound))
				defer w.stop()
				time.Sleep(bound - time.Second)
				synctest.Wait()
				if len(w.runs) != 1 || len(w.Waiting()) != 1 {
					t.Fatalf("%d runs before the bound, waiting for %v", len(w.runs), w.Waiting())
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if len(w.runs) != 2 || len(w.runs[1].Unseen) != 1 || w.runs[1].Unseen[0].Key != key("child") {
					t.Fatalf("%d runs after the bound: %+v", len(w.runs), w.runs)
				}
				if !strings.Contains(b.log.String(), "own writes have not appeared within the bound") {
					t.Errorf("the log says nothing of it:\n%s", b.log.String())
				}
				w.Queue().Add(key("parent"))
				time.Sleep(bound - 5*time.Minute)
				synctest.Wait()
				if len(w.runs) != 2 || len(w.Waiting()) != 1 {
					t.Errorf("%d runs, waiting for %v; want the key to be held back for another bound", len(w.runs), w.Waiting())
				}
				b.line.set(func(l *line) { l.noWatches, l.dead, l.lose = false, false, nil })
				b.line.to().HoldWatches(false)
				time.Sleep(2 * time.Minute) // the informer tries again twice a minute
				synctest.Wait()
				if len(w.runs) != 3 || len(w.runs[2].Unseen) != 0 || len(w.Waiting()) != 0 {
					t.Errorf("%d runs once all is well, the last told of %v, waiting for %v", len(w.runs), w.runs[len(w.runs)-1].Unseen, w.Waiting())
				}
			})
		})
	}
}

func TestStopDoesNotWaitForOwnWrites(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		w := b.writing(func(ctx context.Context, p client.Typed[*corev1.Pod]) error {
			_, err := p.Create(ctx, pod("child"))
			return err
		}, func() {})
		began := time.Now()
		w.stop()
		if took := time.Since(began); took > 0 {
			t.Errorf("it took %s of a minute that the key had to wait", took)
		}
	})
}

func TestAWriteWaitOfZeroDoesNotWait(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		w := b.writing(func(ctx context.Context, p client.Typed[*corev1.Pod]) error {
			_, err := p.Create(ctx, pod("child"))
			return err
		}, func() {
			if names(b.pods)["child"] {
				t.Error("the informer shows what it cannot have been told")
			}
		}, controller.WriteWait(0))
		defer w.stop()
		if len(w.runs) != 2 || len(w.Waiting()) != 0 {
			t.Errorf("%d runs, waiting for %v", len(w.runs), w.Waiting())
		}
	})
}

func TestWriteThatTheServerRefusedHoldsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		w := b.writing(func(ctx context.Context, p client.Typed[*corev1.Pod]) error {
			_, err := p.Create(ctx, pod("parent")) // which there is
			return err
		}, func() {})
		defer w.stop()
		if w.failed == nil || len(w.runs) != 2 || len(w.Waiting()) != 0 {
			t.Errorf("%d runs, waiting for %v (%v)", len(w.runs), w.Waiting(), w.failed)
		}
	})
}

// Whatever becomes of answers and watches, a controller that makes what is missing never
// makes one too many.
func TestNothingIsMadeTwiceWhateverIsLostOrLate(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				// One for each goroutine, and one under the line's lock.
				random, chance, luck := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2)), rand.New(rand.NewPCG(seed, 3))
				const children = 30
				b.line.set(func(l *line) {
					l.lose = func(r *http.Request) bool { return r.Method != http.MethodGet && luck.IntN(3) == 0 }
				})
				view := client.For[*corev1.Pod](b.client)
				most := 0
				var c *controller.Controller
				c = controller.New("test", func(ctx context.Context, req controller.Request) (controller.Result, error) {
					if req.Key != key("parent") {
						return controller.Result{}, nil
					}
					if most = max(most, len(b.line.to().Keys())-1); most > children {
						return controller.Result{}, nil // it has failed: no need to make more
					}
					var errs []error
					for have := len(names(b.pods)) - 1; have < children; have++ {
						child := pod("")
						child.GenerateName = "child-"
						_, err := view.Create(ctx, child)
						if errs = append(errs, err); err != nil {
							break // as somebody who has to look anew
						}
						if chance.IntN(4) == 0 {
							break
						}
					}
					if len(errs) > 0 {
						c.Queue().Add(req.Key)
					}
					return controller.Result{After: time.Second}, errors.Join(errs...)
				}, controller.For(b.pods), controller.Workers(3), b.logger())
				stop := b.start(c)
				for range 100 {
					time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
					switch random.IntN(4) {
					case 0:
						b.line.to().HoldWatches(true)
					case 1:
						b.line.to().HoldWatches(false)
					case 2:
						b.line.set(func(l *line) { l.noWatches = !l.noWatches })
					case 3:
						b.line.set(func(*line) {}) // cut what is open
					}
				}
				b.line.to().HoldWatches(false)
				b.line.set(func(l *line) { l.noWatches, l.lose = false, nil })
				time.Sleep(10 * time.Minute)
				stop()
				if have := len(b.line.to().Keys()) - 1; have != children || most > children {
					t.Errorf("%d children, at most %d; want %d", have, most, children)
				}
			})
		})
	}
}

// A controller that was given no client asks the one that wrote.
func TestWithoutAClientTheOneThatWroteIsAsked(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		w := b.writing(func(ctx context.Context, p client.Typed[*corev1.Pod]) error {
			b.line.mu.Lock()
			b.line.lose = func(r *http.Request) bool { return r.Method == http.MethodPost }
			b.line.mu.Unlock()
			_, err := p.Create(ctx, pod("child"))
			return err
		}, func() {
			if !names(b.pods)["child"] {
				t.Error("the second run does not see what the first one made")
			}
		})
		defer w.stop()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(w.runs) != 1 || len(w.Waiting()) != 1 {
			t.Fatalf("%d runs, waiting for %v", len(w.runs), w.Waiting())
		}
		b.line.to().HoldWatches(false)
		synctest.Wait()
		if len(w.runs) < 2 || len(w.Waiting()) != 0 {
			t.Errorf("once it is shown: %d runs, waiting for %v", len(w.runs), w.Waiting())
		}
	})
}

func TestWaitingSaysWhatIsWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		w := b.writing(func(ctx context.Context, p client.Typed[*corev1.Pod]) error {
			_, err := p.Create(ctx, pod("child"))
			return err
		}, func() {})
		defer w.stop()
		if got, want := w.Waiting()[key("parent")], "create of pods ns/child at 3 to appear"; got != want {
			t.Errorf("waiting for %q, want %q", got, want)
		}
	})
}

func TestARunThatIsDueWhileItsKeyWaitsForOwnWritesIsCounted(t *testing.T) {
	for _, c := range []struct {
		name string
		next func(*workqueue.Queue[object.Key])
		want uint64
	}{
		{"a run that is due", func(q *workqueue.Queue[object.Key]) { q.Add(key("parent")) }, 1},
		{"several requests of one run", func(q *workqueue.Queue[object.Key]) { q.Add(key("parent")); q.Add(key("parent")) }, 1},
		{"none", func(*workqueue.Queue[object.Key]) {}, 0},
		{"one of another key", func(q *workqueue.Queue[object.Key]) { q.Add(key("other")) }, 0},
		{"one that is not due yet", func(q *workqueue.Queue[object.Key]) { q.AddAfter(key("parent"), time.Hour) }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bubble) {
				wrote := false
				loop := controller.New("test", func(ctx context.Context, req controller.Request) (controller.Result, error) {
					if req.Key != key("parent") || wrote {
						return controller.Result{}, nil
					}
					wrote = true
					b.line.to().HoldWatches(true)
					_, err := client.For[*corev1.Pod](b.client).Create(ctx, pod("child"))
					return controller.Result{}, err
				}, controller.For(b.pods), b.logger())
				defer b.start(loop)()
				synctest.Wait()
				c.next(loop.Queue())
				synctest.Wait()
				b.line.to().HoldWatches(false)
				synctest.Wait()
				if got := loop.Status(0).Stale[schema.GroupResource{Resource: "pods"}]; got != c.want {
					t.Errorf("%d runs were due, want %d", got, c.want)
				}
			})
		})
	}
}
