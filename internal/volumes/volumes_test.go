// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestTheBetaAnnotationWinsOverTheFieldOfAClass(t *testing.T) {
	beta := map[string]string{corev1.BetaStorageClassAnnotation: "old"}
	none := map[string]string{corev1.BetaStorageClassAnnotation: ""}
	for _, c := range []struct {
		name        string
		annotations map[string]string
		field       *string
		class       string
		has         bool
	}{
		{"nothing", nil, nil, "", false},
		{"a field", nil, new("new"), "new", true},
		{"an empty field", nil, new(""), "", true},
		{"an annotation", beta, nil, "old", true},
		{"both", beta, new("new"), "old", true},
		{"an empty annotation", none, new("new"), "", true},
	} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations}}
		claim.Spec.StorageClassName = c.field
		if got := ClassOf(claim); got != c.class || HasClass(claim) != c.has {
			t.Errorf("%s: class %q, says so %t; want %q, %t", c.name, got, HasClass(claim), c.class, c.has)
		}
		volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Annotations: c.annotations}}
		volume.Spec.StorageClassName = AttributesOf(c.field)
		if got := ClassOfVolume(volume); got != c.class {
			t.Errorf("%s: the volume has class %q, want %q", c.name, got, c.class)
		}
	}
}

func TestTheNewestDefaultClassIsChosen(t *testing.T) {
	class := func(name string, age time.Duration, annotation string) *storagev1.StorageClass {
		return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{
			Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-age)), Annotations: map[string]string{annotation: "true"},
		}}
	}
	for _, c := range []struct {
		name    string
		classes []*storagev1.StorageClass
		want    string
	}{
		{"none", nil, ""},
		{"none is marked", []*storagev1.StorageClass{class("a", 0, "other")}, ""},
		{"one is marked", []*storagev1.StorageClass{class("a", 0, "other"), class("b", time.Hour, IsDefaultClass)}, "b"},
		{"the beta annotation", []*storagev1.StorageClass{class("b", time.Hour, betaIsDefaultClass)}, "b"},
		{"two", []*storagev1.StorageClass{class("a", time.Hour, IsDefaultClass), class("b", time.Minute, IsDefaultClass)}, "b"},
		{"two of one second", []*storagev1.StorageClass{class("b", time.Hour, IsDefaultClass), class("a", time.Hour, IsDefaultClass)}, "a"},
	} {
		got := DefaultClass(c.classes)
		if c.want == "" && got != nil || c.want != "" && (got == nil || got.Name != c.want) {
			t.Errorf("%s: got %v, want %q", c.name, got, c.want)
		}
	}
	if class := class("a", 0, ""); WaitsForConsumer(class) {
		t.Error("a class without a binding mode waits for a consumer")
	}
}

func TestAVolumeAllowsTheModesThatItHas(t *testing.T) {
	const once, many, read = corev1.ReadWriteOnce, corev1.ReadWriteMany, corev1.ReadOnlyMany
	type modes = []corev1.PersistentVolumeAccessMode
	for _, c := range []struct {
		has, wants modes
		want       bool
	}{
		{modes{once}, modes{once}, true},
		{modes{once, read}, modes{once}, true},
		{modes{once}, modes{once, read}, false},
		{modes{many}, modes{once}, false},
		{nil, modes{once}, false},
		{modes{once}, nil, true},
	} {
		if got := Allows(c.has, c.wants); got != c.want {
			t.Errorf("has %v, wants %v: %t", c.has, c.wants, got)
		}
	}
	claim, volume := new(corev1.PersistentVolumeClaim), new(corev1.PersistentVolume)
	volume.Spec.VolumeMode = new(corev1.PersistentVolumeFilesystem)
	volume.Spec.VolumeAttributesClassName = new("")
	if !SameMode(claim, volume) || !SameAttributes(claim, volume) {
		t.Error("a field that is not set is not its default")
	}
	claim.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	claim.Spec.VolumeAttributesClassName = new("gold")
	if SameMode(claim, volume) || SameAttributes(claim, volume) {
		t.Error("a block device is a file system, or gold is nothing")
	}
}

func TestAPodUsesTheClaimsThatItNamesAndOwns(t *testing.T) {
	named := func(name, claim string) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "pod"}, Spec: corev1.PodSpec{Volumes: []corev1.Volume{
		named("data", "data"),
		{Name: "cache", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
		{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		named("again", "data"),
	}}}
	if got, want := ClaimsOf(pod), []string{"data", "web-cache"}; !slices.Equal(got, want) {
		t.Errorf("the claims are %v, want %v", got, want)
	}
	claim := func(namespace, name string, owner types.UID) *corev1.PersistentVolumeClaim {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if owner != "" {
			claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web", UID: owner, Controller: new(true)}}
		}
		return claim
	}
	for _, c := range []struct {
		name   string
		volume int
		claim  *corev1.PersistentVolumeClaim
		want   bool
	}{
		{"named", 0, claim("ns", "data", ""), true},
		{"of another namespace", 0, claim("other", "data", ""), false},
		{"of another name", 0, claim("ns", "web-cache", "pod"), false},
		{"owned", 1, claim("ns", "web-cache", "pod"), true},
		{"not owned", 1, claim("ns", "web-cache", ""), false},
		{"of a former Pod", 1, claim("ns", "web-cache", "before"), false},
		{"no claim", 2, claim("ns", "", ""), false},
	} {
		if got := Uses(pod, &pod.Spec.Volumes[c.volume], c.claim); got != c.want {
			t.Errorf("a claim %s: %t", c.name, got)
		}
	}
}

func TestAVolumeRefersToAClaimByNameAndUID(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "1"}}
	for _, c := range []struct {
		ref  *corev1.ObjectReference
		want bool
	}{
		{nil, false},
		{&corev1.ObjectReference{Namespace: "ns", Name: "data"}, true},
		{&corev1.ObjectReference{Namespace: "ns", Name: "data", UID: "1"}, true},
		{&corev1.ObjectReference{Namespace: "ns", Name: "data", UID: "2"}, false},
		{&corev1.ObjectReference{Namespace: "ns", Name: "other", UID: "1"}, false},
		{&corev1.ObjectReference{Namespace: "other", Name: "data", UID: "1"}, false},
	} {
		volume := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{ClaimRef: c.ref}}
		if got := Refers(volume, claim); got != c.want {
			t.Errorf("a volume with the reference %v refers to the claim: %t", c.ref, got)
		}
	}
}

func TestAPodHasStoppedWhenNothingOfItRuns(t *testing.T) {
	now := metav1.NewTime(time.Unix(0, 0))
	running := corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	over := corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}
	for _, c := range []struct {
		name    string
		deleted bool
		phase   corev1.PodPhase
		status  corev1.ContainerStatus
		want    bool
	}{
		{"ended", false, corev1.PodSucceeded, over, true},
		{"between two runs", false, corev1.PodRunning, over, false},
		{"deleted, runs", true, corev1.PodRunning, running, false},
		{"deleted, over", true, corev1.PodRunning, over, true},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{Phase: c.phase, ContainerStatuses: []corev1.ContainerStatus{c.status}}}
		if c.deleted {
			pod.DeletionTimestamp = &now
		}
		if got := Stopped(pod); got != c.want {
			t.Errorf("a Pod that is %s has stopped: %t", c.name, got)
		}
	}
}
