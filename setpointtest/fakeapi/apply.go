// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// manager tracks who owns which fields of the objects of a resource, for its main path and
// for each subresource.
type manager map[string]*managedfields.FieldManager

// managerOf returns the field manager of a path. mu is held.
//
// Upstream tracks the owners of fields in every write. Here they are tracked from the first
// apply of an object on: the field manager then counts what is there as owned by
// "before-first-apply", as it does for objects that are older than the tracking.
func (r *Resource) managerOf(subresource string) (*managedfields.FieldManager, error) {
	if r.manager == nil {
		r.manager = &manager{}
	}
	if m := (*r.manager)[subresource]; m != nil {
		return m, nil
	}
	types, create := managedfields.NewDeducedTypeConverter(), managedfields.NewDefaultCRDFieldManager
	if r.builtin {
		types, create = applyconfigurations.NewTypeConverter(scheme.Scheme), managedfields.NewDefaultFieldManager
	}
	m, err := create(types, oneVersion{}, oneVersion{}, oneVersion{}, r.GroupVersionKind(), r.GroupVersion(), subresource, nil)
	if err != nil {
		return nil, err
	}
	(*r.manager)[subresource] = m
	return m, nil
}

// apply is server-side apply. mu is held.
func (r *Resource) apply(q *Request, w *writing, body []byte, force bool) (result, error) {
	text, err := yaml.YAMLToJSON(body)
	if err != nil {
		return result{}, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	var wanted unstructured.Unstructured
	if err := wanted.UnmarshalJSON(text); err != nil {
		return result{}, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	if wanted.GroupVersionKind() != r.GroupVersionKind() {
		return result{}, apierrors.NewBadRequest(fmt.Sprintf("the applied object is a %s, and the path is of %s", wanted.GroupVersionKind(), r.GroupVersionKind()))
	}
	if q.Subresource == "scale" {
		return result{}, newStatusError(http.StatusUnsupportedMediaType, "UnsupportedMediaType", "fakeapi does not apply to the subresource scale")
	}
	// A path owns nothing of what it cannot write.
	switch {
	case q.Subresource == "status":
		for name := range wanted.Object {
			if name != "status" && name != "metadata" && name != "kind" && name != "apiVersion" {
				delete(wanted.Object, name)
			}
		}
	case r.status:
		delete(wanted.Object, "status")
	}
	m, err := r.managerOf(q.Subresource)
	if err != nil {
		return result{}, err
	}
	if r.objects[q.Key] == nil {
		if q.Subresource != "" {
			return result{}, r.notFound(q.Key.Name)
		}
		return r.applyNew(q, w, m, &wanted, force)
	}
	next, err := r.update(q, w, func(now *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		merged, err := m.Apply(now, &wanted, w.manager, force)
		if err != nil {
			return nil, err
		}
		next, err := r.reparse(merged)
		if err != nil {
			return nil, err
		}
		return next, q.checkPlace(next)
	})
	return result{code: http.StatusOK, object: next}, err
}

// applyNew creates an object by applying it. An apply that names a UID means an object that
// was there before, so the server does not make another one. mu is held.
func (r *Resource) applyNew(q *Request, w *writing, m *managedfields.FieldManager, wanted *unstructured.Unstructured, force bool) (result, error) {
	empty := &unstructured.Unstructured{Object: map[string]any{}}
	empty.SetGroupVersionKind(r.GroupVersionKind())
	merged, err := m.Apply(empty, wanted, w.manager, force)
	if err != nil {
		return result{}, err
	}
	o, err := r.reparse(merged)
	if err != nil {
		return result{}, err
	}
	if uid := o.GetUID(); uid != "" {
		return result{}, r.conflict(q.Key.Name, fmt.Errorf("uid mismatch: the provided object specified uid %s, and no existing object was found", uid))
	}
	if err := q.checkPlace(o); err != nil {
		return result{}, err
	}
	next, err := r.insert(q.Key.Namespace, o, w)
	return result{code: http.StatusCreated, object: next}, err
}

// reparse takes what the field manager made through the Go type.
func (r *Resource) reparse(o runtime.Object) (*unstructured.Unstructured, error) {
	text, err := runtime.Encode(unstructured.UnstructuredJSONScheme, o)
	if err != nil {
		return nil, err
	}
	next, _, err := r.parse(text, "")
	return next, err
}

// track notes that an update changed fields which others may own. mu is held.
func (r *Resource) track(q *Request, now, next *unstructured.Unstructured, name string) (*unstructured.Unstructured, error) {
	switch {
	case applies(q):
		return next, nil
	case len(now.GetManagedFields()) == 0:
		if q.Subresource != "" { // its clients cannot write who owns a field
			next.SetManagedFields(nil)
		}
		return next, nil
	}
	m, err := r.managerOf(q.Subresource)
	if err != nil {
		return nil, err
	}
	tracked, err := m.Update(now, next, name)
	if err != nil {
		return nil, err
	}
	return tracked.(*unstructured.Unstructured), nil
}

func applies(q *Request) bool { return q.mediaType() == "application/apply-patch+yaml" }

// oneVersion is for a field manager whose objects are of one version, and unstructured.
type oneVersion struct{}

func (oneVersion) Default(runtime.Object) {}

func (oneVersion) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(kind)
	return u, nil
}

func (oneVersion) Convert(in, out, _ any) error {
	return fmt.Errorf("fakeapi: converting %T into %T", in, out)
}

func (oneVersion) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

func (oneVersion) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
