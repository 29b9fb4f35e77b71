// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/json"
	"net/http"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// scaleOf is the answer that describes an object's scale.
func scaleOf(o *unstructured.Unstructured) (result, error) {
	body, err := json.Marshal(newScale(o))
	return result{code: http.StatusOK, body: body}, err
}

func newScale(o *unstructured.Unstructured) *autoscalingv1.Scale {
	count := func(path ...string) int32 {
		n, _, _ := unstructured.NestedInt64(o.Object, path...)
		return int32(n)
	}
	scale := &autoscalingv1.Scale{
		TypeMeta: metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"},
		ObjectMeta: metav1.ObjectMeta{
			Name: o.GetName(), Namespace: o.GetNamespace(), UID: o.GetUID(),
			ResourceVersion: o.GetResourceVersion(), CreationTimestamp: o.GetCreationTimestamp(),
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: count("spec", "replicas")},
		Status: autoscalingv1.ScaleStatus{Replicas: count("status", "replicas")},
	}
	// A ReplicationController's selector is the labels, the others' is a LabelSelector.
	content, _, _ := unstructured.NestedMap(o.Object, "spec", "selector")
	if o.GetKind() == "ReplicationController" {
		content = map[string]any{"matchLabels": content}
	}
	var selector metav1.LabelSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructured(content, &selector) == nil {
		if s, err := metav1.LabelSelectorAsSelector(&selector); err == nil {
			scale.Status.Selector = s.String()
		}
	}
	return scale
}

// replaceScale is an update of the subresource scale.
func (r *Resource) replaceScale(q *Request, body []byte, dry bool) (result, error) {
	p, err := q.open(body)
	if err != nil {
		return result{}, err
	}
	text, err := p.json()
	if err != nil {
		return result{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writeScale(q, &writing{dry: dry}, func(*autoscalingv1.Scale) ([]byte, error) { return text, nil })
}

// patchScale is a patch of the subresource scale. mu is held.
func (r *Resource) patchScale(q *Request, w *writing, t types.PatchType, body []byte) (result, error) {
	return r.writeScale(q, w, func(now *autoscalingv1.Scale) ([]byte, error) {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(now)
		if err != nil {
			return nil, err
		}
		changed, err := applyPatch(content, t, body, &autoscalingv1.Scale{})
		if err != nil {
			return nil, err
		}
		return json.Marshal(changed)
	})
}

// writeScale takes the number of replicas of a scale over to the object. mu is held.
func (r *Resource) writeScale(q *Request, w *writing, change func(now *autoscalingv1.Scale) ([]byte, error)) (result, error) {
	main := *q
	main.Subresource = ""
	next, err := r.update(&main, w, func(now *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		text, err := change(newScale(now))
		if err != nil {
			return nil, err
		}
		var scale autoscalingv1.Scale
		if err := json.Unmarshal(text, &scale); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if err := q.checkPlace(&scale); err != nil {
			return nil, err
		}
		if scale.ResourceVersion != "" && scale.ResourceVersion != now.GetResourceVersion() {
			return nil, r.conflict(q.Key.Name, errModified)
		}
		return now, unstructured.SetNestedField(now.Object, int64(scale.Spec.Replicas), "spec", "replicas")
	})
	if err != nil {
		return result{}, err
	}
	return scaleOf(next.object)
}
