// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"math/rand/v2"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/internal/podstate"
	"github.com/setpoint-io/setpoint/object"
)

// TestClusterPodsThatOthersDeleteAreCountedOnce runs Jobs whose Pods are evicted by the API server's
// eviction, deleted by users, and fail. The controller is killed meanwhile. At every
// resourceVersion each Pod that has ended is counted once, before it loses its finalizer.
func TestClusterPodsThatOthersDeleteAreCountedOnce(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	cluster := shared.Get(t)
	in := cluster.Namespace(t)
	eyes := managertest.Run(t, cluster.Config)
	b := newBooks(t, eyes, in)
	many := func(j *batchv1.Job) { j.Spec.BackoffLimit = new(int32(1000)) }
	later := func(j *batchv1.Job) { j.Spec.PodReplacementPolicy = new(batchv1.Failed) }
	for name, change := range map[string]func(*batchv1.Job){
		"plain": many, "indexed": isIndexed, "replaced-later": later,
		"ignored": func(j *batchv1.Job) {
			later(j)
			j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
				Action:          batchv1.PodFailurePolicyActionIgnore,
				OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}},
			}}}
		},
	} {
		key := submit(t, in, name, wants(8, 3), many, change)
		b.ledgers[key] = watchLedger(t, eyes, key)
	}
	config := cluster.Restricted(t, Rights())
	start := func() *managertest.Process { return managertest.Run(t, config, managertest.Making(New, Defaults())) }
	p, kills := start(), 0
	o := &others{t: t, random: random, in: in, pods: client.For[*corev1.Pod](cluster.Client)}
	controlplanetest.Eventually(t, "all Jobs are complete", func() bool {
		if random.IntN(5) == 0 && kills < 5 {
			p.Kill()
			kills++
			p = start()
		}
		return o.happen(b.ledgers)
	})
	b.check()
	t.Logf("%d evictions, %d deletions, %d processes were killed", o.evicted, o.deleted, kills)
	if o.evicted == 0 || o.deleted == 0 {
		t.Error("no Pod was evicted, or none was deleted")
	}
}

// others are clients that end the Pods of Jobs.
type others struct {
	t                *testing.T
	random           *rand.Rand
	in               string
	pods             client.Typed[*corev1.Pod]
	evicted, deleted int
}

// happen does something to each Job that is not complete, and reports whether there is none. A
// failure is followed by a success, so that no Job backs off.
func (o *others) happen(jobs map[object.Key]*ledger) (done bool) {
	o.t.Helper()
	list, _, err := o.pods.List(o.t.Context(), client.Selection{Namespace: o.in})
	if err != nil {
		o.t.Fatal(err)
	}
	done = true
	for key := range jobs {
		job, err := client.For[*batchv1.Job](shared.Get(o.t).Client).Get(o.t.Context(), key)
		if err != nil {
			o.t.Fatal(err)
		}
		if finished(job) != nil {
			continue
		}
		done = false
		var active, terminating []*corev1.Pod
		for _, pod := range list {
			switch {
			case !metav1.IsControlledBy(pod, job) || podstate.Ended(pod):
			case podstate.Terminating(pod):
				terminating = append(terminating, pod)
			default:
				active = append(active, pod)
			}
		}
		o.one(active, terminating)
	}
	return done
}

func (o *others) one(active, terminating []*corev1.Pod) {
	o.t.Helper()
	switch {
	case len(terminating) > 0 && (len(active) < 2 || o.random.IntN(2) == 0):
		for _, pod := range terminating {
			finish(o.t, pod, 143)
		}
	case len(active) > 1:
		o.end(active[0])
	}
	if len(active) > 0 {
		finish(o.t, active[len(active)-1], 0)
	}
}

// end ends a Pod in one of several ways.
func (o *others) end(pod *corev1.Pod) {
	o.t.Helper()
	key := object.KeyOf(pod)
	var err error
	switch o.random.IntN(5) {
	case 0, 1:
		_, err = client.Sub[*policyv1.Eviction](o.pods, "eviction").Create(o.t.Context(), key, &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Namespace: o.in, Name: pod.Name}, DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
		})
		if err == nil {
			o.evicted++
		}
	case 2:
		if err = o.pods.Delete(o.t.Context(), key, client.IfUID(pod.UID)); err == nil {
			o.deleted++
		}
	case 3:
		if err = o.pods.Delete(o.t.Context(), key, client.IfUID(pod.UID), client.GracePeriod(0)); err == nil {
			o.deleted++
		}
	case 4:
		finish(o.t, pod, 1)
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		o.t.Fatal(err)
	}
}

// books are what the server has shown of Jobs and their Pods.
type books struct {
	t       *testing.T
	ledgers map[object.Key]*ledger

	mu     sync.Mutex
	pods   map[types.UID]*corev1.Pod    // the last state of each
	freed  map[types.UID]object.Version // when each was first seen without the finalizer
	listed map[types.UID]object.Version // when a Job first listed each
}

func newBooks(t *testing.T, p cache.Provider, in string) *books {
	t.Helper()
	b := &books{
		t: t, ledgers: map[object.Key]*ledger{},
		pods: map[types.UID]*corev1.Pod{}, freed: map[types.UID]object.Version{}, listed: map[types.UID]object.Version{},
	}
	pods := cache.Informer[*corev1.Pod](p, cache.InNamespace(in))
	_, err := pods.AddHandler(func(e cache.Event[*corev1.Pod]) {
		if pod, err := e.Item().Object(); err == nil {
			b.seePod(pod, e.Kind)
		}
	}, cache.HandlerOptions{Name: t.Name(), EveryStep: true})
	if err != nil {
		t.Fatal(err)
	}
	jobs := cache.Informer[*batchv1.Job](p, cache.InNamespace(in))
	_, err = jobs.AddHandler(func(e cache.Event[*batchv1.Job]) {
		if job, err := e.Item().Object(); err == nil {
			b.seeJob(job)
		}
	}, cache.HandlerOptions{Name: t.Name() + " lists", EveryStep: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, synced := range []<-chan struct{}{pods.Synced(), jobs.Synced()} {
		<-synced
	}
	return b
}

func (b *books) seePod(pod *corev1.Pod, kind cache.EventKind) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pods[pod.UID] = pod
	if _, known := b.freed[pod.UID]; !known && (!tracked(pod) || kind == cache.Deleted) {
		b.freed[pod.UID] = object.Version(pod.ResourceVersion)
	}
}

func (b *books) seeJob(job *batchv1.Job) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, uid := range uncountedOf(&job.Status) {
		if _, known := b.listed[uid]; !known {
			b.listed[uid] = object.Version(job.ResourceVersion)
		}
	}
}

// check compares the counters of the Jobs with what became of their Pods.
func (b *books) check() {
	b.t.Helper()
	cluster := shared.Get(b.t)
	for key, l := range b.ledgers {
		var job *batchv1.Job
		controlplanetest.Eventually(b.t, "the watches have the end of "+key.Name, func() bool {
			var err error
			if job, err = client.For[*batchv1.Job](cluster.Client).Get(b.t.Context(), key); err != nil {
				b.t.Fatal(err)
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.last.CompletionTime != nil && b.allFree(job)
		})
		b.checkJob(job, l)
	}
}

// allFree reports whether no Pod of a Job has the finalizer.
func (b *books) allFree(job *batchv1.Job) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for uid, pod := range b.pods {
		if _, free := b.freed[uid]; metav1.IsControlledBy(pod, job) && !free {
			return false
		}
	}
	return true
}

func (b *books) checkJob(job *batchv1.Job, l *ledger) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	byIndex, counted := int32(0), 0
	for uid, pod := range b.pods {
		if !metav1.IsControlledBy(pod, job) {
			continue
		}
		switch disrupted := podstate.Condition(pod, corev1.DisruptionTarget); {
		case indexed(job) && pod.Status.Phase == corev1.PodSucceeded:
			byIndex++
		case job.Spec.PodFailurePolicy != nil && pod.Status.Phase == corev1.PodFailed && disrupted != nil:
			if l.listed[uid] {
				b.t.Errorf("%s: Pod %s is counted, and the policy ignores it", job.Name, pod.Name)
			}
		case !l.over[uid]:
			b.t.Errorf("%s: Pod %s (%s) is not counted", job.Name, pod.Name, pod.Status.Phase)
		case b.listed[uid].AtLeast(b.freed[uid]):
			b.t.Errorf("%s: Pod %s lost its finalizer at resourceVersion %s, and was listed at %s", job.Name, pod.Name, b.freed[uid], b.listed[uid])
		default:
			counted++
		}
	}
	if int(job.Status.Succeeded-byIndex+job.Status.Failed) != counted || job.Status.Succeeded != *job.Spec.Completions {
		b.t.Errorf("%s: %d Pods are counted and %d indexes are complete, and the status is %+v", job.Name, counted, byIndex, job.Status)
	}
}
