// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
)

// Of a hundred changes so many are creations and so many deletions; all others are
// updates.
const (
	createdOfHundred = 5
	deletedOfHundred = 5
)

// podWriter is the field manager that writes Pods, except their status.
const podWriter = "kube-controller-manager"

// flock are the Pods of a cluster that changes. Its methods are safe for concurrent use.
type flock struct {
	mu   sync.Mutex
	free []int // numbers in the corpus; no writer writes to these just now
	next int   // number of the Pod that is created next
}

// take takes a Pod at random, which no other caller gets until it is put back: changes of
// one object come one after the other.
func (f *flock) take(dice *rand.Rand) (pod int, found bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.free) == 0 {
		return 0, false
	}
	i, last := dice.IntN(len(f.free)), len(f.free)-1
	taken := f.free[i]
	f.free[i] = f.free[last]
	f.free = f.free[:last]
	return taken, true
}

func (f *flock) put(pod int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free = append(f.free, pod)
}

// another is the number of a Pod that there never was.
func (f *flock) another() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next++
	return f.next - 1
}

// planned makes of a Pod of the corpus one that a client creates: for a scheduler that does
// not exist, with the account that every namespace has.
func planned(p *corev1.Pod) *corev1.Pod {
	p.ObjectMeta = metav1.ObjectMeta{
		Name: p.Name, Namespace: p.Namespace, Labels: p.Labels, Annotations: p.Annotations, OwnerReferences: p.OwnerReferences,
	}
	p.Spec.SchedulerName = "none"
	p.Spec.ServiceAccountName, p.Spec.DeprecatedServiceAccount = "default", ""
	p.Status = corev1.PodStatus{}
	return p
}

// fill makes the Pods: each is created and then reported as running, so that it is of the
// size that it has in a cluster. It returns what one takes, encoded, in bytes. So many more
// Pods can be created later.
func (s *scene) fill(ctx context.Context, more int) (*flock, float64, error) {
	namespaces := map[string]bool{}
	for i := 0; i < s.size+more; i += podsPerReplicaSet {
		namespaces[pod(i).Namespace] = true
	}
	for namespace := range namespaces {
		if err := s.makeNamespace(ctx, namespace); err != nil {
			return nil, 0, err
		}
	}
	f := &flock{free: make([]int, s.size), next: s.size}
	sizes := make([]int, s.size)
	err := s.each(ctx, s.size, func(ctx context.Context, i int) error {
		p := pod(i)
		running := p.Status
		p, err := s.plain.CoreV1().Pods(p.Namespace).Create(ctx, planned(p), metav1.CreateOptions{FieldManager: podWriter})
		if err != nil {
			return err
		}
		p.Status = running
		p, err = s.plain.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{FieldManager: "kubelet"})
		if err != nil {
			return err
		}
		f.free[i], sizes[i] = i, p.Size()
		return nil
	})
	bytes := 0
	for _, size := range sizes {
		bytes += size
	}
	return f, float64(bytes) / float64(s.size), err
}

// makeNamespace makes a namespace in which Pods can be created: the account that they run
// as is otherwise made by a controller.
func (s *scene) makeNamespace(ctx context.Context, name string) error {
	_, err := s.plain.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err = s.plain.CoreV1().ServiceAccounts(name).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// changer makes a number of changes at a rate.
type changer struct {
	plain   kubernetes.Interface
	flock   *flock
	ledger  *ledger
	clients int
	changes int
	rate    int
	dice    *rand.Rand

	mu      sync.Mutex
	answers []float64 // ms from a request to its answer
	failure error     // the first write that failed
}

// run writes, and returns when all is answered. Writes that fail are counted.
func (l *changer) run(ctx context.Context) error {
	writes := make(chan func(context.Context))
	var all sync.WaitGroup
	for range l.clients {
		all.Go(func() {
			for write := range writes {
				write(ctx)
			}
		})
	}
	err := pace(ctx, l.changes, l.rate, func(int) error {
		select {
		case writes <- l.choose():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	close(writes)
	all.Wait()
	return err
}

// choose says what is written next.
func (l *changer) choose() func(context.Context) {
	n := l.dice.IntN(100)
	if n < createdOfHundred {
		i := l.flock.another()
		return func(ctx context.Context) { l.create(ctx, i) }
	}
	pod, found := l.flock.take(l.dice)
	switch {
	case !found:
		i := l.flock.another()
		return func(ctx context.Context) { l.create(ctx, i) }
	case n < createdOfHundred+deletedOfHundred:
		return func(ctx context.Context) { l.remove(ctx, pod) }
	default:
		return func(ctx context.Context) { l.update(ctx, pod) }
	}
}

func (l *changer) create(ctx context.Context, i int) {
	p := planned(pod(i))
	l.write(told{verb: event.Created, key: object.KeyOf(p).String()}, func(stamp string) error {
		p.Annotations[stampAnnotation] = stamp
		_, err := l.plain.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{FieldManager: podWriter})
		if err == nil {
			l.flock.put(i)
		}
		return err
	})
}

func (l *changer) remove(ctx context.Context, i int) {
	p := pod(i)
	l.write(told{verb: event.Deleted, key: object.KeyOf(p).String()}, func(string) error {
		// At once: there is no kubelet to say that its containers have ended.
		return l.plain.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	})
}

func (l *changer) update(ctx context.Context, i int) {
	p := planned(pod(i))
	l.write(told{verb: event.Updated, key: object.KeyOf(p).String()}, func(stamp string) error {
		return stampPod(ctx, l.plain, p, stamp)
	})
	l.flock.put(i)
}

// stampPod writes a stamp into a Pod, and changes an image of its. The whole Pod is sent: a
// quarter of what a patch costs the server is to apply it, and the server is not what is
// measured.
func stampPod(ctx context.Context, plain kubernetes.Interface, p *corev1.Pod, stamp string) error {
	p.Annotations[stampAnnotation] = stamp
	p.Spec.Containers[0].Image = "registry.example.com/app:" + stamp
	_, err := plain.CoreV1().Pods(p.Namespace).Update(ctx, p, metav1.UpdateOptions{FieldManager: podWriter})
	return err
}

// write notes a write before it is sent, which is when its lag begins, and its answer.
func (l *changer) write(t told, send func(stamp string) error) {
	now := time.Now()
	t.stamp = strconv.FormatInt(now.UnixNano(), 10)
	l.ledger.send(t, now)
	err := send(t.stamp)
	took := time.Since(now)
	l.ledger.answer(t, err == nil, time.Now())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers = append(l.answers, float64(took)/float64(time.Millisecond))
	if err != nil && l.failure == nil && !errors.Is(err, context.Canceled) {
		l.failure = fmt.Errorf("%s of %s: %w", t.verb, t.key, err)
	}
}
