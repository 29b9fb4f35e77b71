// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/object"
)

// bursts is how often changes come at once in a turn, of which the median counts: one
// burst takes a third of a second, and is as long again where the heap grows in it.
const bursts = 5

// measureLoop measures a controller whose reconciles write nothing: how fast it
// works off changes that come at once, without and with a look at the object, and
// how late it is when they come one by one.
func measureLoop(ctx context.Context, s *sideSpec) (_ readings, err error) {
	l, err := startIdleLoop(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.stop()) }()
	found := readings{}
	for _, name := range []string{"", "-reading"} {
		l.reads.Store(name != "")
		var rates, cpus []float64
		for range bursts {
			lap, err := l.burst(ctx, s, "burst"+name)
			if err != nil {
				return nil, err
			}
			rates = append(rates, float64(s.Events)/lap.wall)
			cpus = append(cpus, lap.cpu/float64(s.Events)*1e6)
		}
		found["rate"+name], found["cpu"+name] = median(rates), median(cpus)
	}
	l.reads.Store(false)
	before := l.runs.Load()
	made, err := l.from.askPaced(ctx, s.Paced, s.Rate)
	if err != nil {
		return nil, err
	}
	if err := l.reach(ctx, before+int64(s.Paced)); err != nil {
		return nil, err
	}
	late := make([]float64, 0, len(made))
	for _, change := range made {
		late = append(late, float64(l.seen[change.Object].Load()-change.At)/1e6)
	}
	found["p50"], found["p99"] = quantile(late, 0.5), quantile(late, 0.99)
	return found, nil
}

// idleLoop is a controller at work whose reconciles write nothing.
type idleLoop struct {
	*loop

	from  *server
	stop  func() error
	reads atomic.Bool // a reconcile gets its object
	runs  atomic.Int64
	seen  []atomic.Int64 // when each object was reconciled last
}

// startIdleLoop starts the controller and waits until it has seen each object once.
func startIdleLoop(ctx context.Context, s *sideSpec) (*idleLoop, error) {
	from, err := s.server()
	if err != nil {
		return nil, err
	}
	k, err := kindNamed(s.Kind)
	if err != nil {
		return nil, err
	}
	index := make(map[object.Key]int, s.Objects)
	for i := range s.Objects {
		index[object.KeyOf(k.make(i))] = i
	}
	l := &idleLoop{from: from, seen: make([]atomic.Int64, s.Objects)}
	l.loop, err = newLoop(s, from.config, func(ctx context.Context, key object.Key, o loopObjects) error {
		if l.reads.Load() {
			if _, err := o.get(ctx, key); err != nil {
				return err
			}
		}
		l.seen[index[key]].Store(time.Now().UnixNano())
		l.runs.Add(1)
		return nil
	})
	if err != nil {
		return nil, err
	}
	l.stop = l.start(ctx)
	if err := l.reach(ctx, int64(s.Objects)); err != nil {
		return nil, errors.Join(err, l.stop())
	}
	return l, nil
}

// reach waits until there were so many reconciles.
func (l *idleLoop) reach(ctx context.Context, n int64) error {
	return until(ctx, fmt.Sprintf("%d reconciles, there were %d", n, l.runs.Load()), func() (bool, error) { return l.runs.Load() >= n, l.failure() })
}

// burst measures changes that come at once.
func (l *idleLoop) burst(ctx context.Context, s *sideSpec, step string) (lap, error) {
	before := l.runs.Load()
	return s.timed(step, func() error {
		if _, err := l.from.ask(ctx, "publish", s.Events); err != nil {
			return err
		}
		return l.reach(ctx, before+int64(s.Events))
	})
}

// askPaced has the server make changes one by one.
func (s *server) askPaced(ctx context.Context, changes, rate int) (made []pacedChange, err error) {
	url := fmt.Sprintf("%s%s?changes=%d&rate=%d", s.config.Host, pacedPath, changes, rate)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the server for paced changes: %w", err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&made); err != nil {
		return nil, fmt.Errorf("asking the server for paced changes: %s: %w", response.Status, err)
	}
	return made, nil
}

// quantile is the smallest value that a share of all are not above.
func quantile(all []float64, share float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

// What a ConfigMap asks for, and which annotation says that it has it.
const (
	wanted = "wanted"
	gotten = "bench.setpoint.io/gotten"
)

// measureLoopWrites measures a controller whose reconcile writes once, if the
// object is not as it should be: what it wants as data has to stand in an
// annotation. The objects are made and changed by a plain client in this process,
// while no CPU time is counted.
func measureLoopWrites(ctx context.Context, s *sideSpec) (_ readings, err error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("measuring writes: %w", err)
	}
	config.QPS = -1 // what a client may send is not what is measured
	plain, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("measuring writes: %w", err)
	}
	if err := createWanting(ctx, plain, s); err != nil {
		return nil, fmt.Errorf("measuring writes: %w", err)
	}
	var w writing
	l, err := newLoop(s, config, w.reconcile)
	if err != nil {
		return nil, err
	}
	stop := l.start(ctx)
	defer func() { err = errors.Join(err, stop()) }()
	reach := func(n int) error {
		return until(ctx, fmt.Sprintf("%d writes", n), func() (bool, error) { return w.writes.Load() >= int64(n), l.failure() })
	}
	// The first reconcile begins when the informer has its state.
	if err := reach(1); err != nil {
		return nil, err
	}
	first := w.writes.Load()
	lap, err := timed(func() error { return reach(s.Objects) })
	if err != nil {
		return nil, err
	}
	made := float64(int64(s.Objects) - first)
	found := readings{"rate": made / lap.wall, "cpu": lap.cpu / made * 1e6}
	w.timed.Store(true)
	err = pace(ctx, s.Paced, s.Rate, func(i int) error {
		body := fmt.Appendf(nil, `{"data":{%q:"%d"}}`, wanted, time.Now().UnixNano())
		_, err := plain.CoreV1().ConfigMaps(s.Namespace).Patch(ctx, wantingName(i), types.MergePatchType, body, metav1.PatchOptions{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("measuring writes: changing an object: %w", err)
	}
	if err := reach(s.Objects + s.Paced); err != nil {
		return nil, err
	}
	// Nothing is timed any more: each change has been written.
	found["p50"], found["p99"] = quantile(w.late[:w.n.Load()], 0.5), quantile(w.late[:w.n.Load()], 0.99)
	return found, nil
}

func wantingName(i int) string { return fmt.Sprint("wants-", i) }

// createWanting makes the objects that have not got what they want.
func createWanting(ctx context.Context, plain kubernetes.Interface, s *sideSpec) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.Namespace}}
	if _, err := plain.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return err
	}
	for i := range s.Objects {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: wantingName(i)}, Data: map[string]string{wanted: "0"}}
		if _, err := plain.CoreV1().ConfigMaps(s.Namespace).Create(ctx, o, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// writing is the reconcile that writes, and what it notes.
type writing struct {
	writes atomic.Int64
	timed  atomic.Bool // changes have the time of their request
	n      atomic.Int64
	late   [10_000]float64 // milliseconds from the request of a change to the reconcile that sees it
}

func (w *writing) reconcile(ctx context.Context, key object.Key, o loopObjects) error {
	began := time.Now()
	got, err := o.get(ctx, key)
	if err != nil {
		return err
	}
	m, ok := got.(*corev1.ConfigMap)
	if !ok {
		return fmt.Errorf("reconciling %s: it is a %T", key, got)
	}
	want, wants := m.Data[wanted]
	if !wants || m.Annotations[gotten] == want {
		return nil
	}
	if w.timed.Load() {
		at, err := strconv.ParseInt(want, 10, 64)
		if err != nil {
			return fmt.Errorf("reconciling %s: %w", key, err)
		}
		if n := w.n.Add(1); int(n) <= len(w.late) {
			w.late[n-1] = float64(began.UnixNano()-at) / 1e6
		}
	}
	if err := o.patch(ctx, key, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, gotten, want)); err != nil {
		return err
	}
	w.writes.Add(1)
	return nil
}

// loopObjects is how a reconcile reads and writes objects, in its side's way.
type loopObjects interface {
	get(ctx context.Context, key object.Key) (object.Object, error)
	// patch is a JSON merge patch.
	patch(ctx context.Context, key object.Key, body []byte) error
}

// loopWork is the body of a reconcile.
type loopWork func(ctx context.Context, key object.Key, o loopObjects) error

// loop is a controller with the cache that it reads.
type loop struct {
	run    func(ctx context.Context) error
	failed atomic.Pointer[error]
}

// start runs it until stop, which returns what went wrong.
func (l *loop) start(ctx context.Context) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := l.run(ctx); err != nil {
			l.fail(err)
		}
	}()
	return func() error {
		cancel()
		<-ended
		return l.failure()
	}
}

func (l *loop) fail(err error) { l.failed.CompareAndSwap(nil, &err) }

func (l *loop) failure() error {
	if err := l.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// newLoop makes the controller of a side, of the objects of a kind. An error of a
// reconcile is one of the measurement.
func newLoop(s *sideSpec, config *rest.Config, work loopWork) (*loop, error) {
	k, err := kindNamed(s.Kind)
	if err != nil {
		return nil, err
	}
	ours := s.Side == setpointSide || s.Side == unrecordedSide
	switch {
	case ours && k == podKind:
		return newSetpointLoop[*corev1.Pod](s, config, work)
	case ours && k == configMapKind:
		return newSetpointLoop[*corev1.ConfigMap](s, config, work)
	case s.Side == controllerRuntimeSide && k == podKind:
		return newControllerRuntimeLoop[corev1.Pod](s, config, work)
	case s.Side == controllerRuntimeSide && k == configMapKind:
		return newControllerRuntimeLoop[corev1.ConfigMap](s, config, work)
	}
	return nil, fmt.Errorf("measuring loops: there is none of %s for %s", s.Side, s.Kind)
}
