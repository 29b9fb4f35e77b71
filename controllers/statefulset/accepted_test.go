// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

// TestWhatTheServerAcceptsAndPodsCannotHave has StatefulSets that the real API server accepts, although
// it refuses their Pods, or the controller cannot know them again.
func TestWhatTheServerAcceptsAndPodsCannotHave(t *testing.T) {
	cluster := shared.Get(t)
	namespace := cluster.Namespace(t)
	p := managertest.Run(t, cluster.Restricted(t, Rights()), managertest.Making(New, Defaults()))
	t.Cleanup(func() { // other tests run managers on this server, which would try the same again
		for _, name := range []string{strings.Repeat("a", 63), "beyond", "twice", "labelled"} {
			if err := client.For[*appsv1.StatefulSet](cluster.Client).Delete(context.WithoutCancel(t.Context()), object.Key{Namespace: namespace, Name: name}); err != nil {
				t.Error(err)
			}
		}
	})
	create := func(name string, set *appsv1.StatefulSet) object.Key {
		t.Helper()
		set.Namespace, set.Name, set.UID, set.Generation = namespace, name, "", 0
		if _, err := client.For[*appsv1.StatefulSet](cluster.Client).Create(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		return object.KeyOf(set)
	}
	awaitEvent := func(key object.Key, text string) {
		t.Helper()
		controlplanetest.Eventually(t, "an Event about "+key.Name+" says: "+text, func() bool {
			all, _, err := client.For[*eventsv1.Event](cluster.Client).List(t.Context(), client.Selection{Namespace: namespace})
			return err == nil && slices.ContainsFunc(all, func(e *eventsv1.Event) bool {
				return e.Regarding.Name == key.Name && e.Reason == failedCreate && strings.Contains(e.Note, text)
			})
		})
	}
	claim := corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: new(""),
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
	// Its labels would have up to 74 characters.
	long := create(strings.Repeat("a", 63), web(1))
	beyond := create("beyond", web(2, parallel, startAt(math.MaxInt32)))
	twice := create("twice", web(1, withClaims(retain, retain), func(set *appsv1.StatefulSet) {
		set.Spec.VolumeClaimTemplates[0].Spec = claim
		last := set.Spec.VolumeClaimTemplates[0].DeepCopy()
		last.Labels = map[string]string{"tier": "last"}
		set.Spec.VolumeClaimTemplates = append(set.Spec.VolumeClaimTemplates, *last)
	}))
	labelled := create("labelled", web(1, withClaims(retain, retain), func(set *appsv1.StatefulSet) {
		set.Spec.VolumeClaimTemplates[0].Spec = claim
		set.Spec.VolumeClaimTemplates[0].Labels = map[string]string{"no label": "not a value"}
	}))

	awaitEvent(long, "the name of the StatefulSet is too long for the labels of its Pods: create it with a name of 52 characters at most")
	awaitEvent(beyond, "the largest ordinal is 2147483647; make spec.ordinals.start or spec.replicas smaller, by 1 together")
	awaitEvent(labelled, "Create Claim data-labelled-0 for Pod labelled-0 in StatefulSet labelled failed error: ")
	controlplanetest.Await(t, p, twice, "its Pod exists", func(set *appsv1.StatefulSet) bool { return set.Status.Replicas == 1 })
	controlplanetest.Await(t, p, beyond, "its first Pod exists", func(set *appsv1.StatefulSet) bool { return set.Status.Replicas == 1 })
	pod, err := client.For[*corev1.Pod](cluster.Client).Get(t.Context(), object.Key{Namespace: namespace, Name: "twice-0"})
	if err != nil || !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Name == "data" && v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "data-twice-0"
	}) {
		t.Errorf("the Pod has the volumes %+v (%v)", pod.Spec.Volumes, err)
	}
	made, err := client.For[*corev1.PersistentVolumeClaim](cluster.Client).Get(t.Context(), object.Key{Namespace: namespace, Name: "data-twice-0"})
	if err != nil || made.Labels["tier"] != "last" {
		t.Errorf("the claim is %+v (%v)", made, err)
	}
}
