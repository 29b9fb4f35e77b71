// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"

	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/object"
)

// HashLabel has the hash of a StatefulSet's revision, and of those that other controllers
// make with package history of upstream. A DaemonSet's is in
// [appsv1.DefaultDaemonSetUniqueLabelKey].
// Source: k8s.io/kubernetes/pkg/controller/history, ControllerRevisionHashLabel.
const HashLabel = "controller.kubernetes.io/hash"

// State is what a revision records of its owner. Its methods do not change it.
type State struct {
	Owner object.Object
	Kind  schema.GroupVersionKind // of the owner

	Labels      map[string]string // of the revision; the hash is added
	Annotations map[string]string // of the revision
	Data        []byte            // JSON

	// HashLabel is the label that has the hash.
	HashLabel string
	// Hash names the revision. It must return the same text for the same state and count.
	Hash func(collisions *int32) string
	// NameMost is how many bytes of the owner's name are in the revision's name; 0 is as
	// many as fit.
	NameMost int
	// Same reports whether a revision with other data asks for the same. Nil is never.
	Same func(older *appsv1.ControllerRevision) bool
}

// StatefulSet returns what a revision of a StatefulSet records: its Pod template. The
// revision's name also is the value of the label controller-revision-hash of its Pods.
func StatefulSet(set *appsv1.StatefulSet) (State, error) {
	data, err := TemplateData(&set.Spec.Template)
	if err != nil {
		return State{}, err
	}
	return State{
		Owner: set, Kind: appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
		Labels: set.Spec.Template.Labels, Annotations: set.Annotations, Data: data,
		HashLabel: HashLabel,
		Hash:      func(collisions *int32) string { return HashData(data, collisions) },
		NameMost:  statefulSetNameMost,
		Same:      func(older *appsv1.ControllerRevision) bool { return sameTemplate(older, data) },
	}, nil
}

// statefulSetNameMost leaves more room for the hash than it needs, as upstream does.
// Source: k8s.io/kubernetes/pkg/controller/history, ControllerRevisionName.
const statefulSetNameMost = 223

// DaemonSet returns what a revision of a DaemonSet records: its Pod template. The hash also is
// the value of the label controller-revision-hash of its Pods.
func DaemonSet(set *appsv1.DaemonSet) (State, error) {
	data, err := exactTemplateData(&set.Spec.Template)
	if err != nil {
		return State{}, err
	}
	return State{
		Owner: set, Kind: appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
		Labels: set.Spec.Template.Labels, Annotations: set.Annotations, Data: data,
		HashLabel: appsv1.DefaultDaemonSetUniqueLabelKey,
		Hash:      func(collisions *int32) string { return HashTemplate(&set.Spec.Template, collisions) },
	}, nil
}

// Revision returns a revision that is not created yet. number is its order among the others,
// and collisions the owner's collision count; nil is none.
func (s State) Revision(number int64, collisions *int32) *appsv1.ControllerRevision {
	hash := s.Hash(collisions)
	marked := make(map[string]string, len(s.Labels)+1)
	maps.Copy(marked, s.Labels)
	marked[s.HashLabel] = hash
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Owner.GetNamespace(), Name: s.name(hash),
			Labels: marked, Annotations: maps.Clone(s.Annotations),
			OwnerReferences: []metav1.OwnerReference{owned.By(s.Owner, s.Kind)},
		},
		Data:     runtime.RawExtension{Raw: s.Data},
		Revision: number,
	}
}

func (s State) name(hash string) string {
	most := validation.DNS1123SubdomainMaxLength - len("-") - len(hash)
	if s.NameMost > 0 {
		most = s.NameMost
	}
	name := s.Owner.GetName()
	return name[:min(len(name), most)] + "-" + hash
}

// equal reports whether a revision has the same data.
func (s State) equal(r *appsv1.ControllerRevision) bool { return bytes.Equal(r.Data.Raw, s.Data) }

// TemplateData returns the data of a revision that records a Pod template: a strategic merge
// patch that puts the template into another state of the owner. Keys are sorted. A number
// that float64 cannot hold is rounded, as upstream rounds it for a StatefulSet.
// Source: k8s.io/kubernetes/pkg/controller/statefulset, getPatch.
func TemplateData(template *corev1.PodTemplateSpec) ([]byte, error) {
	return templateData(template, json.Unmarshal)
}

// exactTemplateData is [TemplateData] without rounding, for a DaemonSet.
// Source: k8s.io/kubernetes/pkg/controller/daemon, getPatch.
func exactTemplateData(template *corev1.PodTemplateSpec) ([]byte, error) {
	return templateData(template, kjson.UnmarshalCaseSensitivePreserveInts)
}

// templateData passes the template through a map, which sorts its keys. decode also decides
// which numbers stay exact.
func templateData(template *corev1.PodTemplateSpec, decode func([]byte, any) error) ([]byte, error) {
	typed, err := json.Marshal(template)
	if err != nil {
		return nil, fmt.Errorf("encoding the Pod template: %w", err)
	}
	var fields map[string]any
	if err := decode(typed, &fields); err != nil {
		return nil, fmt.Errorf("encoding the Pod template: %w", err)
	}
	fields["$patch"] = "replace"
	return json.Marshal(map[string]any{"spec": map[string]any{"template": fields}})
}

// Template returns the Pod template that a revision has recorded, as it was written: without
// defaults that the API server fills in today. The revisions of StatefulSets and DaemonSets
// have one.
func Template(r *appsv1.ControllerRevision) (*corev1.PodTemplateSpec, error) {
	var recorded struct {
		Spec struct {
			Template *corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(r.Data.Raw, &recorded); err != nil {
		return nil, fmt.Errorf("reading the Pod template of ControllerRevision %s: %w", object.KeyOf(r), err)
	}
	if recorded.Spec.Template == nil {
		return nil, fmt.Errorf("reading the Pod template of ControllerRevision %s: %w", object.KeyOf(r), errNoTemplate)
	}
	return recorded.Spec.Template, nil
}

var errNoTemplate = errors.New("its data have no spec.template")

// sameTemplate reports whether a revision asks for the same Pods as data.
// Source: k8s.io/kubernetes/pkg/controller/statefulset, setMatchesLatestExistingRevision.
func sameTemplate(older *appsv1.ControllerRevision, data []byte) bool {
	template, err := Template(older)
	if err != nil {
		return false
	}
	fillDefaults(&template.Spec)
	again, err := TemplateData(template)
	return err == nil && bytes.Equal(again, data)
}
