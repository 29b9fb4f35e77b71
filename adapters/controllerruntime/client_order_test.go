// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/setpoint-io/setpoint/adapters/controllerruntime"
	"github.com/setpoint-io/setpoint/object"
)

// journey is how long a request is on its way to the server, and the answer on its way back, which may be lost.
type journey struct {
	there, back time.Duration
	lost        bool
}

// journeys delays the requests whose context has a journey.
type journeys struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (j journeys) RoundTrip(r *http.Request) (*http.Response, error) {
	of, _ := r.Context().Value(journey{}).(journey)
	time.Sleep(of.there)
	answer, err := j.next.RoundTrip(r)
	time.Sleep(of.back)
	if of.lost && err == nil {
		return nil, errors.Join(io.ErrUnexpectedEOF, answer.Body.Close())
	}
	return answer, err
}

func (j journey) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, journey{}, j)
}

var keyOfX = object.Key{Namespace: "team-a", Name: "x"}

// writer is a client whose writes of the Pod team-a/x overlap.
type writer struct {
	crclient.Client
	*world
}

// withWriter runs a test with a client whose requests take the journeys of their contexts, and a cache that lags.
func withWriter(t *testing.T, options crcache.Options, test func(t *testing.T, x *writer)) {
	t.Helper()
	inWorld(t, options, func(t *testing.T, w *world) {
		config := w.api.Config()
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return journeys{next} })
		c, err := controllerruntime.NewClient(config, crclient.Options{Mapper: w.mapper, Cache: &crclient.CacheOptions{Reader: w.cache}})
		must(t, err)
		if _, err := w.cache.GetInformer(t.Context(), &corev1.Pod{}, crcache.BlockUntilSynced(false)); err != nil {
			t.Fatal(err)
		}
		defer w.start(t)()
		w.api.Faults.LagWatches(func() time.Duration { return lag })
		test(t, &writer{c, w})
	})
}

// known returns the Pod as the server has it, or an empty one with its name.
func (x *writer) known() *corev1.Pod {
	p := podOf("team-a", "x")
	if u := x.api.Of(pods).Get(keyOfX); u != nil {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, p); err != nil {
			panic(err)
		}
	}
	return p
}

func (x *writer) patch(ctx context.Context, text string) error {
	return x.Patch(ctx, podOf("team-a", "x"), crclient.RawPatch(types.MergePatchType, []byte(text)))
}

// The operations on the Pod team-a/x.
var operations = map[string]func(ctx context.Context, x *writer) error{
	"create": func(ctx context.Context, x *writer) error {
		p := podOf("team-a", "x")
		p.Labels = map[string]string{"app": "web"}
		return x.Create(ctx, p)
	},
	"create with a finalizer": func(ctx context.Context, x *writer) error {
		p := podOf("team-a", "x")
		p.Labels, p.Finalizers = map[string]string{"app": "web"}, []string{"example.com/held"}
		return x.Create(ctx, p)
	},
	"update": func(ctx context.Context, x *writer) error {
		p := x.known()
		p.Annotations = map[string]string{"n": p.ResourceVersion}
		return x.Update(ctx, p)
	},
	"patch": func(ctx context.Context, x *writer) error {
		return x.patch(ctx, fmt.Sprintf(`{"metadata":{"annotations":{"at":"%d"}}}`, time.Now().UnixNano()))
	},
	"leave": func(ctx context.Context, x *writer) error { return x.patch(ctx, `{"metadata":{"labels":null}}`) },
	"enter": func(ctx context.Context, x *writer) error {
		return x.patch(ctx, `{"metadata":{"labels":{"app":"web"}}}`)
	},
	"release": func(ctx context.Context, x *writer) error { return x.patch(ctx, `{"metadata":{"finalizers":null}}`) },
	"delete": func(ctx context.Context, x *writer) error {
		return x.Delete(ctx, podOf("team-a", "x"), crclient.GracePeriodSeconds(0))
	},
	"delete a known one": func(ctx context.Context, x *writer) error {
		return x.Delete(ctx, x.known(), crclient.GracePeriodSeconds(0))
	},
	"delete by UID": func(ctx context.Context, x *writer) error {
		uid := x.known().UID
		return x.Delete(ctx, podOf("team-a", "x"), crclient.Preconditions{UID: &uid}, crclient.GracePeriodSeconds(0))
	},
	"delete all": func(ctx context.Context, x *writer) error {
		return x.DeleteAllOf(ctx, &corev1.Pod{}, crclient.InNamespace("team-a"), crclient.GracePeriodSeconds(0))
	},
	"read": func(ctx context.Context, x *writer) error {
		return crclient.IgnoreNotFound(x.Get(ctx, keyOf("team-a", "x"), &corev1.Pod{}))
	},
	"remove the informer": func(ctx context.Context, x *writer) error { return x.cache.RemoveInformer(ctx, &corev1.Pod{}) },
	"pause":               func(context.Context, *writer) error { return nil },
}

// step is an operation of a goroutine: when it begins, after the one before, and how long it takes.
type step struct {
	operation string
	after     time.Duration
	journey
}

// do carries out the steps of some goroutines, and returns when all have ended. Conflicts and the like are part of it.
func (x *writer) do(t *testing.T, plan [][]step) {
	t.Helper()
	var all sync.WaitGroup
	for _, steps := range plan {
		all.Go(func() {
			for _, s := range steps {
				time.Sleep(s.after)
				err := operations[s.operation](s.in(t.Context()), x)
				if s.operation == "read" && apierrors.IsTimeout(err) {
					continue // the informer was removed before it had listed
				}
				if err != nil && !s.lost && !apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
					t.Errorf("%s: %v", s.operation, err)
				}
			}
		})
	}
	all.Wait()
}

// compare reads again and again, and compares what it reads with what the server has. No read may be as late as one that
// has compared the cache with the server because it waited in vain.
func (x *writer) compare(t *testing.T, selects func(p *corev1.Pod) bool) {
	t.Helper()
	want := "nothing"
	if p := x.known(); p.UID != "" && selects(p) {
		want = fmt.Sprintf("%s at %s", p.UID, p.ResourceVersion)
	}
	start := time.Now()
	for range 20 {
		began := time.Now()
		got := "nothing"
		if p := get(t, x, "team-a", "x"); p != nil {
			got = fmt.Sprintf("%s at %s", p.UID, p.ResourceVersion)
		}
		if got != want {
			t.Errorf("a read after %s shows %s, and the server has %s", time.Since(start), got, want)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("a read took %s", took)
		}
		time.Sleep(lag / 10)
	}
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// In each case, the answers come in an order that is not that of the server.
func TestReadsAfterWritesWhoseAnswersOvertakeEachOther(t *testing.T) {
	settle := step{"pause", 3 * lag, journey{}} // the cache shows what was written before
	for name, plan := range map[string][][]step{
		"update, delete": {
			{{"create", 0, journey{}}, settle, {"update", 0, journey{back: ms(100)}}},
			{{"delete", 3*lag + ms(50), journey{}}},
		},
		"update, delete with a finalizer": {
			{{"create with a finalizer", 0, journey{}}, settle, {"update", 0, journey{back: ms(100)}}},
			{{"delete", 3*lag + ms(50), journey{}}},
		},
		"update, delete by UID": {
			{{"create", 0, journey{}}, settle, {"update", 0, journey{back: ms(100)}}},
			{{"delete by UID", 3*lag + ms(50), journey{}}},
		},
		"update, delete all": {
			{{"create", 0, journey{}}, settle, {"update", 0, journey{back: ms(100)}}},
			{{"delete all", 3*lag + ms(50), journey{}}},
		},
		"create, delete": {
			{{"create", 0, journey{back: ms(100)}}},
			{{"delete", ms(50), journey{}}},
		},
		"create, delete all": {
			{{"create", 0, journey{back: ms(100)}}},
			{{"delete all", ms(50), journey{}}},
		},
		"delete, create": {
			{{"create", 0, journey{}}, settle, {"delete", 0, journey{back: ms(100)}}},
			{{"create", 3*lag + ms(50), journey{}}},
		},
		"delete all, create": {
			{{"create", 0, journey{}}, settle, {"delete all", 0, journey{back: ms(100)}}},
			{{"create", 3*lag + ms(50), journey{}}},
		},
		"delete, create, delete": {
			{{"create", 0, journey{}}, settle, {"delete", 0, journey{}}, {"create", 0, journey{back: ms(100)}}},
			{{"delete", 3*lag + ms(50), journey{}}},
		},
		"delete, create, delete, and a read in between": {
			{{"create", 0, journey{}}, settle, {"delete", 0, journey{}}, {"create", 0, journey{back: 3 * lag}}},
			{{"delete", 3*lag + ms(50), journey{}}, {"read", 0, journey{}}},
		},
		"create, delete, create": {
			{{"create", 0, journey{back: ms(100)}}},
			{{"delete", ms(20), journey{}}, {"create", 0, journey{}}},
		},
		"create, update, delete, create, update": {
			{{"create", 0, journey{}}, {"update", 0, journey{back: ms(200)}}},
			{{"delete", ms(20), journey{back: ms(100)}}},
			{{"create", ms(40), journey{back: ms(50)}}},
			{{"patch", ms(60), journey{}}},
		},
		"one goroutine": {
			{{"create", 0, journey{}}, settle, {"delete", 0, journey{}}, {"create", ms(50), journey{}}, {"delete", ms(50), journey{}}},
		},
		"patch without an answer during the read after another one": {
			{{"create", 0, journey{}}, settle, {"patch", 0, journey{lost: true}}, {"read", 0, journey{back: ms(200)}}},
			{{"patch", 3*lag + ms(100), journey{lost: true}}},
		},
		"the last finalizer": {
			{{"create with a finalizer", 0, journey{}}, settle, {"delete", 0, journey{}}, {"patch", 0, journey{back: ms(100)}}},
			{{"release", 3*lag + ms(50), journey{}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			withWriter(t, crcache.Options{}, func(t *testing.T, x *writer) {
				x.do(t, plan)
				x.compare(t, func(*corev1.Pod) bool { return true })
			})
		})
	}
}

func TestReadsAfterAnUpdateThatLeavesTheSelectionAndOneThatEntersIt(t *testing.T) {
	for name, plan := range map[string][][]step{
		"leave, enter":              {{{"create", 0, journey{}}, {"leave", 0, journey{}}, {"enter", 0, journey{}}}},
		"enter, leave":              {{{"create", 0, journey{}}, {"leave", 0, journey{}}, {"enter", 0, journey{}}, {"leave", 0, journey{}}}},
		"leave, delete":             {{{"create", 0, journey{}}, {"leave", 0, journey{}}, {"delete", 0, journey{}}}},
		"leave, enter, overtaken":   {{{"create", 0, journey{}}, {"leave", 0, journey{back: ms(100)}}}, {{"enter", ms(50), journey{}}}},
		"patch, leave, overtaken":   {{{"create", 0, journey{}}, {"patch", 0, journey{back: ms(100)}}}, {{"leave", ms(50), journey{}}}},
		"leave, patch, overtaken":   {{{"create", 0, journey{}}, {"leave", 0, journey{back: ms(100)}}}, {{"patch", ms(50), journey{}}}},
		"enter, delete, overtaken":  {{{"create", 0, journey{}}, {"leave", 0, journey{}}, {"enter", 0, journey{back: ms(100)}}}, {{"delete", ms(50), journey{}}}},
		"leave, delete, create, it": {{{"create", 0, journey{}}, {"leave", 0, journey{back: ms(100)}}}, {{"delete", ms(50), journey{}}, {"create", 0, journey{}}}},
	} {
		t.Run(name, func(t *testing.T) {
			withWriter(t, crcache.Options{DefaultLabelSelector: selector(t, "app=web")}, func(t *testing.T, x *writer) {
				x.do(t, plan)
				x.compare(t, func(p *corev1.Pod) bool { return p.Labels["app"] == "web" })
			})
		})
	}
}

// The model is the server: when all writes have returned, a read has what the server has.
func TestReadsAfterOverlappingWritesHaveWhatTheServerHas(t *testing.T) {
	writes := []string{
		"create", "create", "create with a finalizer", "update", "patch", "leave", "enter", "release", "delete", "delete", "delete a known one",
		"delete by UID", "delete all", "read", "read", "pause", "remove the informer",
	}
	for i := range 60 {
		seed := rand.Uint64()
		if i == 0 {
			seed = 1
		}
		random := rand.New(rand.NewPCG(seed, 0))
		plan := make([][]step, 1+random.IntN(3))
		for g := range plan {
			for range 1 + random.IntN(6) {
				s := step{operation: writes[random.IntN(len(writes))]}
				for _, d := range []*time.Duration{&s.after, &s.there, &s.back} {
					if random.IntN(2) == 0 {
						*d = ms(random.IntN(2 * int(lag.Milliseconds())))
					}
				}
				// A creation without an answer may be seen after a deletion, as no version of the object is known.
				s.lost = s.operation != "read" && !strings.HasPrefix(s.operation, "create") && random.IntN(8) == 0
				plan[g] = append(plan[g], s)
			}
		}
		options, selects := crcache.Options{}, func(*corev1.Pod) bool { return true }
		if random.IntN(2) == 0 {
			options.DefaultLabelSelector = selector(t, "app=web")
			selects = func(p *corev1.Pod) bool { return p.Labels["app"] == "web" }
		}
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Logf("with the selector %v: %+v", options.DefaultLabelSelector, plan)
			withWriter(t, options, func(t *testing.T, x *writer) {
				x.do(t, plan)
				x.compare(t, selects)
				if len(plan) > 1 || slices.ContainsFunc(plan[0], func(s step) bool { return s.lost }) {
					return
				}
				for _, call := range x.api.Of(pods).Calls() {
					if strings.HasPrefix(call, "get ") {
						t.Errorf("one goroutine wrote, and a read asked the server: %s", call)
					}
				}
			})
		})
	}
}
