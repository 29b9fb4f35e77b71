// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// answer makes a handler of a function that returns an object or an error.
func answer(get func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		object, err := get(r)
		if err != nil {
			fail(w, err)
			return
		}
		send(w, http.StatusOK, object)
	}
}

// fail answers with a Status.
func fail(w http.ResponseWriter, err error) {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(err)
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	send(w, int(status.Code), status)
}

// notFound is the answer for a metric that does not exist. The message is what users see
// in the conditions of an autoscaler.
func notFound(format string, args ...any) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusNotFound,
		Reason:  metav1.StatusReasonNotFound,
		Message: fmt.Sprintf(format, args...),
	}}
}

func send(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object) // the client may be gone
}

// resourceList answers the discovery of one version of an API.
func resourceList(version schema.GroupVersion, resources ...metav1.APIResource) http.HandlerFunc {
	return answer(func(*http.Request) (any, error) {
		return metav1.APIResourceList{
			TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
			GroupVersion: version.String(),
			APIResources: append([]metav1.APIResource{}, resources...), // an empty list, not null
		}, nil
	})
}

// selection is which objects a list has.
type selection struct {
	labels labels.Selector
	fields fields.Selector
}

// selectionOf reads the query of a list.
func selectionOf(r *http.Request) (selection, error) {
	query := r.URL.Query()
	if watch := query.Get("watch"); watch != "" && watch != "false" && watch != "0" {
		return selection{}, apierrors.NewMethodNotSupported(schema.GroupResource{Resource: "metrics"}, "watch")
	}
	var s selection
	var err error
	if s.labels, err = labels.Parse(query.Get("labelSelector")); err != nil {
		return selection{}, apierrors.NewBadRequest(fmt.Sprintf("labelSelector: %v", err))
	}
	if s.fields, err = fields.ParseSelector(query.Get("fieldSelector")); err != nil {
		return selection{}, apierrors.NewBadRequest(fmt.Sprintf("fieldSelector: %v", err))
	}
	for _, term := range s.fields.Requirements() {
		if term.Field != "metadata.name" && term.Field != "metadata.namespace" {
			return selection{}, apierrors.NewBadRequest(fmt.Sprintf("fieldSelector: no field %q; choose metadata.name or metadata.namespace", term.Field))
		}
	}
	return s, nil
}

func (s selection) has(o metav1.Object) bool {
	return s.labels.Matches(labels.Set(o.GetLabels())) &&
		s.fields.Matches(fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()})
}
