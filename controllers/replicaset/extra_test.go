// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// chaos is a world in which all that can go wrong does, chosen by a seed. More than half of
// the writes go well. Requests come in an order that the scheduler of goroutines chooses, so
// a seed leads to similar runs, not to equal ones.
type chaos struct {
	t        *testing.T
	random   *rand.Rand
	server   *server
	recorded *record
	want     map[object.Key]int      // replicas
	ended    map[types.UID]time.Time // when Pods failed, left, or began to be deleted
	calm     atomic.Bool
}

// lockedSource is a source of randomness for several goroutines.
type lockedSource struct {
	mu     sync.Mutex
	source rand.Source
}

func (l *lockedSource) Uint64() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.source.Uint64()
}

// longestStall is how long a server may sit on a request. Pods that count no more stay
// for longer than that, see the package's documentation.
const longestStall = 5 * time.Second

func newChaos(t *testing.T, seed uint64) *chaos {
	c := &chaos{
		t: t, random: rand.New(&lockedSource{source: rand.NewPCG(seed, 1)}), server: newServer(t),
		want: map[object.Key]int{}, ended: map[types.UID]time.Time{},
	}
	c.recorded = recordAll(t, c.server)
	c.server.LagWatches(func() time.Duration { return c.aboutOf(300 * time.Millisecond) })
	for _, r := range []*fakeapi.Resource{c.server.pods, c.server.sets, c.server.events} {
		refuse(r, c.refusal)
		r.Delay(func(q *fakeapi.Request) time.Duration {
			if !isWrite(q) {
				return 0
			}
			return c.aboutOf(20 * time.Millisecond)
		})
		r.LoseAnswer(func(q *fakeapi.Request) bool { return isWrite(q) && c.oneIn(12) })
	}
	return c
}

// oneIn is true one time in n until the world is calm.
func (c *chaos) oneIn(n int) bool { return !c.calm.Load() && c.random.IntN(n) == 0 }

// aboutOf returns times whose mean is d, and none once the world is calm.
func (c *chaos) aboutOf(d time.Duration) time.Duration {
	if c.calm.Load() {
		return 0
	}
	return time.Duration(c.random.ExpFloat64() * float64(d))
}

// refusal refuses one write in four.
func (c *chaos) refusal(*fakeapi.Request) *metav1.Status {
	if !c.oneIn(4) {
		return nil
	}
	switch c.random.IntN(3) {
	case 0:
		return forbidden("")
	case 1:
		return refusal(http.StatusInternalServerError, metav1.StatusReasonInternalError, "a webhook does not answer")
	}
	return refusal(http.StatusConflict, metav1.StatusReasonConflict, "another one was faster")
}

// stall has one write in twelve carried out after its connection has broken.
func (c *chaos) stall(r *http.Request) time.Duration {
	if r.Method == http.MethodGet || !c.oneIn(12) {
		return 0
	}
	return min(longestStall, c.aboutOf(3*time.Second))
}

// start runs the controller in a process of its own.
func (c *chaos) start(o Options) (stop, kill func()) {
	p := newProcess(c.t, c.server, c.stall)
	_, stop = startProcess(c.t, p, o)
	return stop, func() {
		p.kill()
		stop()
	}
}

// meddle does to the world what others may do.
func (c *chaos) meddle() {
	s, some := c.server, c.somePod()
	switch c.random.IntN(7) {
	case 0: // more are wanted
		key := object.Key{Namespace: web.Namespace, Name: fmt.Sprintf("web-%d", c.random.IntN(len(c.want)))}
		c.want[key] += c.random.IntN(20)
		s.changeSet(key, func(set *appsv1.ReplicaSet) { *set.Spec.Replicas = int32(c.want[key]) })
	case 1: // a Pod is deleted: at once, or when its node has ended it
		if some == nil || c.resting(some) || some.DeletionTimestamp != nil {
			return
		}
		c.ends(some)
		if some.Spec.NodeName == "" {
			s.pods.Remove(object.KeyOf(some))
			return
		}
		c.change(some, func(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.Now()) })
	case 2:
		if some != nil && !c.resting(some) {
			s.pods.Remove(object.KeyOf(some))
		}
	case 3:
		if some != nil && some.DeletionTimestamp == nil {
			c.ends(some)
			c.change(some, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })
		}
	case 4, 5:
		if some != nil && !hasEnded(some) {
			c.change(some, func(pod *corev1.Pod) {
				pod.Status.Phase, pod.Spec.NodeName = corev1.PodRunning, "node-1"
				pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
			})
		}
	case 6: // a Pod leaves
		if some != nil {
			c.ends(some)
			c.change(some, func(pod *corev1.Pod) { pod.Labels = map[string]string{"app": "quarantine"} })
		}
	}
}

// somePod returns one of the Pods, or nil if there is none.
func (c *chaos) somePod() *corev1.Pod {
	keys := c.server.pods.Keys()
	if len(keys) == 0 {
		return nil
	}
	key, err := object.ParseKey(keys[c.random.IntN(len(keys))])
	c.server.check(err)
	pod, err := fakeapi.Read[*corev1.Pod](c.server.pods, key)
	if apierrors.IsNotFound(err) { // the controller has just deleted it
		return nil
	}
	c.server.check(err)
	return pod
}

// change changes a Pod if it is still there.
func (c *chaos) change(pod *corev1.Pod, change func(*corev1.Pod)) {
	err := fakeapi.Change(c.server.pods, object.KeyOf(pod), change)
	if !apierrors.IsNotFound(err) {
		c.server.check(err)
	}
}

// ends notes that a Pod does not count any more.
func (c *chaos) ends(pod *corev1.Pod) {
	if _, known := c.ended[pod.UID]; !known {
		c.ended[pod.UID] = time.Now()
	}
}

// resting reports whether a Pod that counts no more is to stay for now.
func (c *chaos) resting(pod *corev1.Pod) bool {
	ended, known := c.ended[pod.UID]
	return known && time.Since(ended) <= longestStall
}

func TestNoPodIsEverMadeBeyondWhatIsAskedFor(t *testing.T) {
	seeds := 20
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newChaos(t, uint64(seed))
				for i := range 3 {
					set := webSet(int32(c.random.IntN(30)))
					set.Name, set.UID = fmt.Sprintf("web-%d", i), ""
					set.Spec.Selector.MatchLabels = map[string]string{"app": set.Name}
					set.Spec.Template.Labels = map[string]string{"app": set.Name}
					c.want[object.KeyOf(set)] = int(*set.Spec.Replicas)
					c.server.addSet(set)
				}
				stop, kill := c.start(Options{Workers: 5, Burst: 1 + c.random.IntN(40)})
				for range 60 {
					time.Sleep(time.Duration(c.random.ExpFloat64() * float64(200*time.Millisecond)))
					c.meddle()
					if c.random.IntN(15) == 0 {
						kill()
						stop, kill = c.start(Defaults())
					}
				}
				c.calm.Store(true)
				time.Sleep(30 * time.Minute) // the longest delay of a retry is 1,000 s
				synctest.Wait()
				c.converged()
				// Fewer are wanted, down to none.
				for key := range c.want {
					c.want[key] = c.random.IntN(c.want[key] + 1)
					c.server.changeSet(key, func(set *appsv1.ReplicaSet) { *set.Spec.Replicas = int32(c.want[key]) })
				}
				settle()
				c.converged()
				stop()
				c.recorded.check(t)
			})
		})
	}
}

func (c *chaos) converged() {
	c.t.Helper()
	pods := c.server.allPods()
	for key, want := range c.want {
		set := c.server.set(key)
		have := active(pods, set.UID)
		if have != want {
			c.t.Errorf("%s has %d Pods, want %d", key, have, want)
		}
		if int(set.Status.Replicas) != have || set.Status.ObservedGeneration != set.Generation || len(set.Status.Conditions) != 0 {
			c.t.Errorf("%s has the status %v of generation %d, want %d replicas", key, set.Status, set.Generation, have)
		}
	}
}
