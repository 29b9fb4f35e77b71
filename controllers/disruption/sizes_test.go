// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

// aQuarter is a budget that allows a quarter of the Pods to be unavailable.
func aQuarter() *policyv1.PodDisruptionBudget {
	pdb := budget(intstr.FromInt32(0))
	pdb.Spec.MinAvailable, pdb.Spec.MaxUnavailable = nil, new(intstr.FromString("25%"))
	return pdb
}

// eightOf adds eight ready Pods of an owner.
func (c *cluster) eightOf(apiVersion, kind, owner string) {
	c.t.Helper()
	for name := range strings.FieldsSeq("a b c d e f g h") {
		p := pod(name, true)
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: owner, UID: types.UID(owner), Controller: new(true)}}
		c.add(p)
	}
}

// A new size counts as soon as it is there: the Pods that are to come may take their time, or may never come.
func TestANewSizeOfEachKindOfOwnerCountsBeforeAnyPodChanges(t *testing.T) {
	named := metav1.ObjectMeta{Namespace: "shop", Name: "owner", UID: "owner", Generation: 1}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	ofRollout := named
	ofRollout.OwnerReferences = []metav1.OwnerReference{{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout", Name: "web", UID: "web", Controller: new(true)}}
	for name, test := range map[string]struct {
		apiVersion, kind, resource string
		sized                      func(replicas *int32) object.Object
	}{
		"a StatefulSet": {"apps/v1", "StatefulSet", "statefulsets", func(n *int32) object.Object {
			return &appsv1.StatefulSet{ObjectMeta: named, Spec: appsv1.StatefulSetSpec{Replicas: n, Template: template}}
		}},
		"a ReplicaSet without a controller": {"apps/v1", "ReplicaSet", "replicasets", func(n *int32) object.Object {
			return &appsv1.ReplicaSet{ObjectMeta: named, Spec: appsv1.ReplicaSetSpec{Replicas: n, Template: template}}
		}},
		"a ReplicaSet whose controller is of a custom kind": {"apps/v1", "ReplicaSet", "replicasets", func(n *int32) object.Object {
			return &appsv1.ReplicaSet{ObjectMeta: ofRollout, Spec: appsv1.ReplicaSetSpec{Replicas: n, Template: template}}
		}},
		"a ReplicationController": {"v1", "ReplicationController", "replicationcontrollers", func(n *int32) object.Object {
			return &corev1.ReplicationController{ObjectMeta: named, Spec: corev1.ReplicationControllerSpec{Replicas: n, Template: &template}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				owners := c.others[test.resource]
				if owners == nil {
					owners = c.sets
				}
				put := func(replicas int32, generation int64) {
					o := test.sized(&replicas)
					o.SetGeneration(generation)
					if err := owners.Put(o); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				put(8, 1)
				c.eightOf(test.apiVersion, test.kind, "owner")
				c.add(aQuarter())
				c.start()
				c.want("of eight", 8, 6, 8, 2)
				put(16, 2)
				c.want("of sixteen, with eight Pods", 8, 12, 16, 0)
				put(4, 3)
				c.want("of four, with eight Pods", 8, 3, 4, 5)
			})
		})
	}
}

// scaleServer answers the requests for the scale of the one Rollout that there is, and hands the others on.
type scaleServer struct {
	next http.RoundTripper

	mu       sync.Mutex
	replicas int32
	reads    int
}

func (s *scaleServer) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.URL.Path, "/rollouts/web/scale") {
		return s.next.RoundTrip(r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	body, err := json.Marshal(&autoscalingv1.Scale{
		TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web"},
		Spec:       autoscalingv1.ScaleSpec{Replicas: s.replicas},
	})
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(string(body))), ContentLength: int64(len(body)), Request: r,
	}, nil
}

// resize scales the Rollout, as a user does.
func (s *scaleServer) resize(replicas int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replicas = replicas
}

// count returns how often the scale was read since the last call.
func (s *scaleServer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.reads
	s.reads = 0
	return n
}

// The controller watches no custom kinds: only the server knows their sizes. The budget counts again although no Pod
// changes, and reads one scale for all Pods.
func TestANewSizeOfACustomKindCountsWithinHalfAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.api.Serve(object.Resource{Group: "argoproj.io", Version: "v1alpha1", Plural: "rollouts", Kind: "Rollout", Namespaced: true})
		c.eightOf("argoproj.io/v1alpha1", "Rollout", "web")
		number := budget(intstr.FromInt32(3)) // for whose numbers no scale is read
		number.Name, number.UID = "number", "number"
		c.add(aQuarter(), number)
		server := &scaleServer{next: c.api, replicas: 8}
		config := c.api.Config()
		config.Transport = server
		managertest.Run(t, config, managertest.Making(New, Defaults()))
		synctest.Wait()
		c.want("of eight", 8, 6, 8, 2)
		server.resize(16) // and no Pod is created
		time.Sleep(scalePeriod)
		synctest.Wait()
		c.want("of sixteen, with eight Pods", 8, 12, 16, 0)
		c.api.Forget()
		server.count()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := server.count(); n != int(10*time.Minute/scalePeriod) {
			t.Errorf("the scale of eight Pods was read %d times in ten minutes", n)
		}
		for _, call := range c.api.Calls() {
			if !strings.HasPrefix(call, "watch") {
				t.Errorf("a request in ten minutes without a change: %s", call)
			}
		}
	})
}

// The budget counts again when the eviction ends or when the scale is to be read, whichever comes first.
func TestABudgetCountsAgainAtTheFirstOfItsTimes(t *testing.T) {
	for _, test := range []struct {
		name string
		c    census
		want time.Duration
	}{
		{"nothing is to come", census{}, 0},
		{"a scale", census{live: true}, scalePeriod},
		{"an eviction", census{recheck: now.Add(time.Minute)}, time.Minute + time.Second},
		{"an eviction that has ended", census{recheck: now.Add(-time.Minute)}, time.Second},
		{"a scale, and an eviction later", census{live: true, recheck: now.Add(time.Minute)}, scalePeriod},
		{"an eviction, and a scale later", census{live: true, recheck: now.Add(time.Second)}, 2 * time.Second},
	} {
		if got := test.c.next(now); got != test.want {
			t.Errorf("%s: after %s, want %s", test.name, got, test.want)
		}
	}
}
