// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/object"
)

// The Deployment of all tests: a quarter more Pods and a quarter fewer are allowed
// while it is rolled out.
const (
	replicas = 20
	most     = 25
	least    = 15
)

// rollout is a Deployment that is rolled out again and again.
type rollout struct {
	t       *testing.T
	cluster *controlplanetest.Cluster
	key     object.Key
	release
}

// deploy creates the Deployment.
func deploy(t *testing.T, cluster *controlplanetest.Cluster, namespace string) *rollout {
	t.Helper()
	r := &rollout{t: t, cluster: cluster, key: object.Key{Namespace: namespace, Name: "web"}, release: 1}
	count, labels := int32(replicas), map[string]string{"app": "web"}
	_, err := client.For[*appsv1.Deployment](cluster.Client).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &count,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: r.template(labels),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// next begins the rollout of another release.
func (r *rollout) next() {
	r.t.Helper()
	r.release++
	patch, err := r.patch()
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err := client.For[*appsv1.Deployment](r.cluster.Client).Patch(r.t.Context(), r.key, patch); err != nil {
		r.t.Fatal(err)
	}
}

// over returns a channel that is closed once the rollout is over, by the word of
// the Deployment's status.
func (r *rollout) over() <-chan struct{} {
	over := make(chan struct{})
	ctx := r.t.Context()
	go func() {
		for ctx.Err() == nil {
			d, err := client.For[*appsv1.Deployment](r.cluster.Client).Get(ctx, r.key)
			if err == nil && complete(d) {
				close(over)
				return
			}
			select {
			case <-time.After(25 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
	return over
}

// complete is what "kubectl rollout status" calls rolled out, and that it knows.
func complete(d *appsv1.Deployment) bool {
	s := d.Status
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == replicas && s.Replicas == replicas && s.AvailableReplicas == replicas
}

// inBounds holds what a rollout may do to the Pods of its namespace.
func inBounds(pods map[types.UID]*corev1.Pod) error {
	count, available := 0, 0
	for _, pod := range pods {
		if !alive(pod) {
			continue
		}
		count++
		if ready(pod) {
			available++
		}
	}
	if count > most || available < least {
		return fmt.Errorf("%d Pods of at most %d, %d available of at least %d", count, most, available, least)
	}
	return nil
}

// alive reports whether a Pod counts: it has not ended and is not being deleted.
func alive(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// converged fails the test unless the cluster comes to hold what is wanted, and
// nothing else: as many ready Pods of the newest release as there are replicas, all
// of one ReplicaSet, and no others, not even terminating ones.
func (r *rollout) converged(w *podWatch) {
	r.t.Helper()
	select {
	case <-r.over():
	case <-time.After(patience):
		d, err := client.For[*appsv1.Deployment](r.cluster.Client).Get(context.WithoutCancel(r.t.Context()), r.key)
		if err != nil {
			r.t.Fatal(err)
		}
		r.t.Fatalf("not rolled out after %s: %+v", patience, d.Status)
	}
	w.until(r.t, "exactly the wanted Pods", nil, func(pods map[types.UID]*corev1.Pod, _ int) bool { return r.wrong(pods, replicas) == "" })
	r.checkSets()
}

// checkSets fails the test unless each release has one ReplicaSet, and the newest one has all
// Pods.
func (r *rollout) checkSets() {
	r.t.Helper()
	sets, _, err := client.For[*appsv1.ReplicaSet](r.cluster.Client).List(r.t.Context(), client.Selection{Namespace: r.key.Namespace})
	if err != nil {
		r.t.Fatal(err)
	}
	images := map[string]string{}
	for _, set := range sets {
		image := set.Spec.Template.Spec.Containers[0].Image
		if other, twice := images[image]; twice {
			r.t.Errorf("release %s has two ReplicaSets, %s and %s", image, other, set.Name)
		}
		images[image] = set.Name
		want := int32(0)
		if image == r.image() {
			want = replicas
		}
		if *set.Spec.Replicas != want {
			r.t.Errorf("ReplicaSet %s of %s is to have %d Pods, want %d", set.Name, image, *set.Spec.Replicas, want)
		}
	}
	if images[r.image()] == "" {
		r.t.Errorf("there is no ReplicaSet of %s: %v", r.image(), images)
	}
}
