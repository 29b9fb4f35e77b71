// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package replicaset

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/object"
)

// chaos is a world in which all that can go wrong does, chosen by a seed.
type chaos struct {
	t      *testing.T
	random *rand.Rand
	server *server
	want   map[object.Key]int      // replicas
	ended  map[types.UID]time.Time // when Pods failed, left, or began to be deleted
	calm   bool
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
	c := &chaos{t: t, random: rand.New(&lockedSource{source: rand.NewPCG(seed, 1)}), server: newServer(), want: map[object.Key]int{}, ended: map[types.UID]time.Time{}}
	c.server.lag = func() time.Duration {
		if c.calm {
			return 0
		}
		return time.Duration(c.random.ExpFloat64() * float64(300*time.Millisecond))
	}
	c.server.fate = c.fate
	c.server.onCreate = func(pod *corev1.Pod) {
		owner := metav1.GetControllerOfNoCopy(pod)
		key := object.Key{Namespace: pod.Namespace, Name: owner.Name}
		if now := c.server.active(owner.UID); now > c.want[key] {
			t.Errorf("at %v: Pod %s is number %d of %d", time.Now().Format(time.StampMilli), pod.Name, now, c.want[key])
			c.trace(owner.UID)
		}
	}
	return c
}

// fate lets half of the writes go well. Requests come in an order that the scheduler
// of goroutines chooses, so that a seed leads to similar runs, not to equal ones.
func (c *chaos) fate(request) fate {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if c.calm {
		return fate{}
	}
	takes := time.Duration(c.random.ExpFloat64() * float64(20*time.Millisecond))
	switch c.random.IntN(12) {
	case 0:
		return fate{takes: takes, lose: true}
	case 1:
		return fate{stalled: min(longestStall, time.Duration(c.random.ExpFloat64()*float64(3*time.Second)))}
	case 2:
		return fate{refuse: forbidden("")}
	case 3:
		return fate{refuse: refusal(http.StatusInternalServerError, metav1.StatusReasonInternalError, "a webhook does not answer")}
	case 4:
		return fate{refuse: refusal(http.StatusConflict, metav1.StatusReasonConflict, "another one was faster"), takes: takes}
	}
	return fate{takes: takes}
}

// meddle does to the world what others may do.
func (c *chaos) meddle() {
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	var some *corev1.Pod // maps are walked in an order of their own
	for _, pod := range s.pods {
		some = pod.DeepCopy()
		break
	}
	switch c.random.IntN(7) {
	case 0: // more are wanted
		for key, set := range s.sets {
			c.want[key] += c.random.IntN(20)
			set = set.DeepCopy()
			*set.Spec.Replicas = int32(c.want[key])
			set.Generation++
			s.putSet("MODIFIED", set)
			break
		}
	case 1:
		if some != nil && !c.resting(some) {
			c.ends(some)
			s.endPod(some)
		}
	case 2:
		if some != nil && !c.resting(some) {
			s.dropPod(some)
		}
	case 3:
		if some != nil && some.DeletionTimestamp == nil {
			c.ends(some)
			some.Status.Phase = corev1.PodFailed
			s.putPod("MODIFIED", some)
		}
	case 4, 5:
		if some != nil && !hasEnded(some) {
			some.Status.Phase, some.Spec.NodeName = corev1.PodRunning, "node-1"
			some.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}}
			s.putPod("MODIFIED", some)
		}
	case 6: // a Pod leaves
		if some != nil {
			c.ends(some)
			some.Labels = map[string]string{"app": "quarantine"}
			s.putPod("MODIFIED", some)
		}
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

// trace logs what happened to the Pods of an owner. The server is locked.
func (c *chaos) trace(owner types.UID) {
	for _, change := range c.server.history["pods"] {
		var pod corev1.Pod
		if err := json.Unmarshal(change.object, &pod); err != nil {
			c.t.Fatal(err)
		}
		if ref := metav1.GetControllerOfNoCopy(&pod); ref != nil && ref.UID == owner {
			c.t.Logf("%s %s %s (%s), %s, node %q, deleted %v, seen %s", change.at.Format("05.000"), change.kind, pod.Name, pod.UID,
				pod.Status.Phase, pod.Spec.NodeName, pod.DeletionTimestamp != nil, change.seen.Format("05.000"))
		}
	}
}

func TestNoPodIsEverMadeBeyondWhatIsAskedFor(t *testing.T) {
	seeds := 60
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
				stop, kill := start(t, c.server, Options{Workers: 5, Burst: 1 + c.random.IntN(40)})
				for range 60 {
					time.Sleep(time.Duration(c.random.ExpFloat64() * float64(200*time.Millisecond)))
					c.meddle()
					if c.random.IntN(15) == 0 {
						kill()
						stop, kill = start(t, c.server, Defaults())
					}
				}
				c.server.mu.Lock()
				c.calm = true
				c.server.mu.Unlock()
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
			})
		})
	}
}

func (c *chaos) converged() {
	c.t.Helper()
	for key, want := range c.want {
		set := c.server.set(key)
		c.server.mu.Lock()
		have := c.server.active(set.UID)
		c.server.mu.Unlock()
		if have != want {
			c.t.Errorf("%s has %d Pods, want %d", key, have, want)
		}
		if int(set.Status.Replicas) != have || set.Status.ObservedGeneration != set.Generation || len(set.Status.Conditions) != 0 {
			c.t.Errorf("%s has the status %v of generation %d, want %d replicas", key, set.Status, set.Generation, have)
		}
	}
}
