// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controller/owned"
)

// claimName returns the name of the claim of a template for the Pod of an ordinal. Upstream's
// heuristics for zones read the form.
// Source: k8s.io/kubernetes/pkg/controller/statefulset, getPersistentVolumeClaimName.
func claimName(set *appsv1.StatefulSet, template string, ordinal int) string {
	return template + "-" + set.Name + "-" + strconv.Itoa(ordinal)
}

// claimTemplates returns the templates of claims. The API server accepts several of one name, of
// which the last one counts: a Pod has one volume of a name.
//
// Source: k8s.io/kubernetes/pkg/controller/statefulset, getPersistentVolumeClaims.
func claimTemplates(set *appsv1.StatefulSet) []corev1.PersistentVolumeClaim {
	all := set.Spec.VolumeClaimTemplates
	templates := all // as nearly always, without an allocation: each run asks for each Pod
	for i := len(all) - 2; i >= 0; i-- {
		if named(all[i+1:], all[i].Name) {
			templates = slices.Delete(slices.Clone(templates), i, i+1)
		}
	}
	return templates
}

// named reports whether one of some templates has a name.
func named(templates []corev1.PersistentVolumeClaim, name string) bool {
	for i := range templates {
		if templates[i].Name == name {
			return true
		}
	}
	return false
}

// newClaims returns the claims of the Pod of an ordinal, in the order of their templates. A claim
// that goes with the StatefulSet refers to it from the start.
func newClaims(set *appsv1.StatefulSet, ordinal int) []*corev1.PersistentVolumeClaim {
	templates := claimTemplates(set)
	all := make([]*corev1.PersistentVolumeClaim, 0, len(templates))
	for i := range templates {
		template := &templates[i]
		claim := template.DeepCopy()
		claim.Name, claim.Namespace = claimName(set, template.Name, ordinal), set.Namespace
		labels := map[string]string{}
		maps.Copy(labels, template.Labels)
		maps.Copy(labels, set.Spec.Selector.MatchLabels)
		claim.Labels = labels
		if whenDeleted(set) == remove {
			claim.OwnerReferences = append(claim.OwnerReferences, owned.By(set, kind.GroupVersionKind()))
		}
		all = append(all, claim)
	}
	return all
}

// What becomes of a claim.
const (
	retain = appsv1.RetainPersistentVolumeClaimRetentionPolicyType
	remove = appsv1.DeletePersistentVolumeClaimRetentionPolicyType
)

func whenDeleted(set *appsv1.StatefulSet) appsv1.PersistentVolumeClaimRetentionPolicyType {
	if policy := set.Spec.PersistentVolumeClaimRetentionPolicy; policy != nil && policy.WhenDeleted == remove {
		return remove
	}
	return retain
}

func whenScaled(set *appsv1.StatefulSet) appsv1.PersistentVolumeClaimRetentionPolicyType {
	if policy := set.Spec.PersistentVolumeClaimRetentionPolicy; policy != nil && policy.WhenScaled == remove {
		return remove
	}
	return retain
}

// podKind is the kind of the owner of a claim that goes with its Pod.
var podKind = corev1.SchemeGroupVersion.WithKind("Pod")

// claimOwners has the owners of a claim: by name, by UID, and as controller.
type claimOwners struct {
	set, pod     bool // refers to this StatefulSet, this Pod
	stale        bool // refers to another StatefulSet or Pod of the name
	stalePod     bool // refers to another Pod of the name
	foreign      bool // another object is the controller
	noController bool // refers to the StatefulSet or the Pod, which is not the controller
}

// ownersOf reads the owner references of a claim of a Pod.
func ownersOf(claim *corev1.PersistentVolumeClaim, set *appsv1.StatefulSet, pod *corev1.Pod) claimOwners {
	var o claimOwners
	for i := range claim.OwnerReferences {
		ref := &claim.OwnerReferences[i]
		controls := ref.Controller != nil && *ref.Controller
		switch {
		case isNamed(ref, kind.APIVersion(), kind.Kind, set.Name):
			o.set = o.set || ref.UID == set.UID
			o.stale = o.stale || ref.UID != set.UID
			o.noController = o.noController || ref.UID == set.UID && !controls
		case isNamed(ref, "v1", podKind.Kind, pod.Name):
			o.pod = o.pod || ref.UID == pod.UID
			o.stalePod = o.stalePod || ref.UID != pod.UID
			o.noController = o.noController || ref.UID == pod.UID && !controls
		case controls:
			o.foreign = true
		}
	}
	o.stale = o.stale || o.stalePod
	return o
}

// isNamed reports whether a reference has this kind and name.
func isNamed(ref *metav1.OwnerReference, apiVersion, kind, name string) bool {
	return ref.APIVersion == apiVersion && ref.Kind == kind && ref.Name == name
}

// isStale reports whether a claim still belongs to an earlier Pod of the name, with which it is
// about to be deleted. A Pod that is created now would lose it.
//
// Source: k8s.io/kubernetes/pkg/controller/statefulset, PodClaimIsStale.
func isStale(claim *corev1.PersistentVolumeClaim, set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	return whenScaled(set) == remove && ownersOf(claim, set, pod).stalePod
}

// refer returns the owner references that the retention policy wants a claim to have, and false if
// it has them. conflicting is true if another controller owns the claim.
//
//	whenScaled  whenDeleted  owner, while the ordinal is wanted   owner, afterwards
//	Retain      Retain       none                                 none
//	Retain      Delete       the StatefulSet                      the StatefulSet
//	Delete      Retain       none                                 the Pod
//	Delete      Delete       the StatefulSet                      the Pod
//
// A claim that refers to another StatefulSet or Pod of the name is left alone: the garbage
// collector decides what becomes of it. One that another controller owns loses our references.
//
// Source: k8s.io/kubernetes/pkg/controller/statefulset, isClaimOwnerUpToDate and
// updateClaimOwnerRefForSetAndPod.
func refer(claim *corev1.PersistentVolumeClaim, set *appsv1.StatefulSet, pod *corev1.Pod) (refs []metav1.OwnerReference, differs, conflicting bool) {
	o := ownersOf(claim, set, pod)
	keeps := whenScaled(set) == retain && whenDeleted(set) == retain
	conflicting = !keeps && (o.foreign || o.stale)
	if o.stale {
		return nil, false, conflicting
	}
	wanted := wants(set, ordinalOf(pod))
	toSet := !conflicting && whenDeleted(set) == remove && (wanted || whenScaled(set) == retain)
	toPod := !conflicting && whenScaled(set) == remove && !wanted
	if o.set == toSet && o.pod == toPod && (conflicting || !o.noController) {
		return nil, false, conflicting
	}
	for _, ref := range claim.OwnerReferences {
		if ref.UID != set.UID && ref.UID != pod.UID {
			refs = append(refs, ref)
		}
	}
	if toSet {
		refs = append(refs, owned.By(set, kind.GroupVersionKind()))
	}
	if toPod {
		refs = append(refs, owned.By(pod, podKind))
	}
	return refs, true, conflicting
}
