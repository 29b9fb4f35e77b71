// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// selection is which objects a request concerns.
type selection struct {
	resource  *Resource
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

// newSelection reads the selectors of a request.
func (r *Resource) newSelection(q *Request, options *metav1.ListOptions) (*selection, error) {
	s := &selection{resource: r, namespace: q.Key.Namespace}
	var err error
	if s.labels, err = labels.Parse(options.LabelSelector); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if s.fields, err = fields.ParseSelector(options.FieldSelector); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	for _, requirement := range s.fields.Requirements() {
		if _, known := r.fields[requirement.Field]; known {
			continue
		}
		message := "field label not supported: " + requirement.Field
		if len(r.fields) == 2 {
			message = fmt.Sprintf("%q is not a known field selector: only \"metadata.name\", \"metadata.namespace\"", requirement.Field)
		}
		return nil, apierrors.NewBadRequest(message)
	}
	return s, nil
}

// everything reports whether no selector is set.
func (s *selection) everything() bool { return s.labels.Empty() && s.fields.Empty() }

// takes reports whether an object is selected. There may be none.
func (s *selection) takes(o *state) bool {
	if o == nil || s.namespace != "" && o.object.GetNamespace() != s.namespace {
		return false
	}
	return s.everything() || s.labels.Matches(labels.Set(o.object.GetLabels())) && s.fields.Matches(objectFields{s.resource, o.object})
}

// objectFields reads the fields of an object for a selector.
type objectFields struct {
	resource *Resource
	object   *unstructured.Unstructured
}

func (s objectFields) Has(label string) bool {
	_, known := s.resource.fields[label]
	return known
}

func (s objectFields) Get(label string) string {
	f := s.resource.fields[label]
	value, found, err := unstructured.NestedFieldNoCopy(s.object.Object, strings.Split(f.path, ".")...)
	if err != nil || !found || value == nil {
		return f.zero
	}
	return fmt.Sprint(value)
}
