// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// writing is a create, an update or a patch.
type writing struct {
	dry        bool
	manager    string // the field manager
	validation string // of fields, as in metav1.CreateOptions
	warnings   []string
}

// get answers with an object.
func (r *Resource) get(q *Request) (result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.objects[q.Key]
	switch {
	case now == nil:
		return result{}, r.notFound(q.Key.Name)
	case q.Subresource == "scale":
		return scaleOf(now.object)
	}
	return result{code: http.StatusOK, object: now}, nil
}

func (r *Resource) notFound(name string) error { return apierrors.NewNotFound(r.groupResource(), name) }

// create makes an object.
func (r *Resource) create(q *Request, body []byte) (result, error) {
	var options metav1.CreateOptions
	query := q.HTTP.URL.Query()
	if err := metav1.Convert_url_Values_To_v1_CreateOptions(&query, &options, nil); err != nil {
		return result{}, apierrors.NewBadRequest(err.Error())
	}
	if errs := metav1validation.ValidateCreateOptions(&options); len(errs) > 0 {
		return result{}, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("CreateOptions").GroupKind(), "", errs)
	}
	o, warnings, err := r.object(q, body, options.FieldValidation)
	if err != nil {
		return result{}, err
	}
	w := &writing{dry: dry(options.DryRun), manager: q.manager(options.FieldManager), warnings: warnings}
	r.mu.Lock()
	defer r.mu.Unlock()
	next, err := r.insert(q.Key.Namespace, o, w)
	return result{code: http.StatusCreated, object: next, warnings: warnings}, err
}

// insert stores a new object. mu is held.
func (r *Resource) insert(namespace string, o *unstructured.Unstructured, w *writing) (*state, error) {
	if o.GetResourceVersion() != "" {
		return nil, newStatusError(http.StatusInternalServerError, "", "resourceVersion should not be set on objects to be created")
	}
	if err := checkNamespace(o, namespace); err != nil {
		return nil, err
	}
	o.SetUID(r.random.uid())
	o.SetCreationTimestamp(metav1.Now())
	o.SetDeletionTimestamp(nil)
	o.SetDeletionGracePeriodSeconds(nil)
	o.SetSelfLink("")
	o.SetGeneration(0)
	if r.generation {
		o.SetGeneration(1)
	}
	generated := o.GetName() == "" && o.GetGenerateName() != ""
	if generated {
		o.SetName(r.random.name(o.GetGenerateName()))
	}
	r.begin(o)
	if errs := apivalidation.ValidateObjectMetaAccessor(o, r.Namespaced, r.validName, field.NewPath("metadata")); len(errs) > 0 {
		return nil, apierrors.NewInvalid(r.GroupVersionKind().GroupKind(), o.GetName(), errs)
	}
	if now := r.objects[object.KeyOf(o)]; now != nil {
		err := apierrors.NewAlreadyExists(r.groupResource(), o.GetName())
		if generated {
			err = apierrors.NewGenerateNameConflict(r.groupResource(), o.GetName(), 1)
		}
		if now.object.GetDeletionTimestamp() != nil {
			err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
		}
		return nil, err
	}
	if w.dry {
		return &state{object: o}, nil
	}
	return r.commit(r, wire.Added, o), nil
}

// begin gives a new object the status that one has at first.
func (r *Resource) begin(o *unstructured.Unstructured) {
	if !r.status {
		return
	}
	delete(o.Object, "status")
	if r.builtin {
		o.Object["status"] = map[string]any{}
	}
	switch r.lifecycle {
	case plain:
	case ofPods:
		o.Object["status"] = map[string]any{"phase": "Pending"}
	case ofNamespaces:
		o.Object["status"] = map[string]any{"phase": "Active"}
		o.Object["spec"] = map[string]any{"finalizers": []any{"kubernetes"}}
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["kubernetes.io/metadata.name"] = o.GetName()
		o.SetLabels(labels)
	}
}

// checkPlace gives an object the namespace of its request, and refuses one of another
// name: a request is for the object that its path names. Source:
// k8s.io/apiserver/pkg/endpoints/handlers, checkName.
func (q *Request) checkPlace(o metav1.Object) error {
	if err := checkNamespace(o, q.Key.Namespace); err != nil {
		return err
	}
	switch name := o.GetName(); name {
	case q.Key.Name:
		return nil
	case "":
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", q.Key.Name))
	default:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, q.Key.Name))
	}
}

// checkNamespace gives an object the namespace of its request. An object of a kind without
// namespaces loses the one that it names.
func checkNamespace(o metav1.Object, namespace string) error {
	if own := o.GetNamespace(); own != "" && namespace != "" && own != namespace {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	o.SetNamespace(namespace)
	return nil
}

// manager returns the name of a request's field manager. Without one it is the beginning
// of the client's name. Source: k8s.io/apiserver/pkg/endpoints/handlers.
func (q *Request) manager(name string) string {
	if name != "" {
		return name
	}
	agent, _, _ := strings.Cut(q.HTTP.UserAgent(), "/")
	return agent[:min(len(agent), metav1validation.FieldManagerMaxLength)]
}

// replace updates an object.
func (r *Resource) replace(q *Request, body []byte) (result, error) {
	var options metav1.UpdateOptions
	query := q.HTTP.URL.Query()
	if err := metav1.Convert_url_Values_To_v1_UpdateOptions(&query, &options, nil); err != nil {
		return result{}, apierrors.NewBadRequest(err.Error())
	}
	if errs := metav1validation.ValidateUpdateOptions(&options); len(errs) > 0 {
		return result{}, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("UpdateOptions").GroupKind(), "", errs)
	}
	if q.Subresource == "scale" {
		return r.replaceScale(q, body, dry(options.DryRun))
	}
	o, warnings, err := r.object(q, body, options.FieldValidation)
	if err != nil {
		return result{}, err
	}
	if err := q.checkPlace(o); err != nil {
		return result{}, err
	}
	w := &writing{dry: dry(options.DryRun), manager: q.manager(options.FieldManager), warnings: warnings}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.objects[q.Key] == nil && r.upsert && q.Subresource == "" {
		if uid := o.GetUID(); uid != "" {
			return result{}, r.otherUID(q, uid, "")
		}
		o.SetResourceVersion("")
		next, err := r.insert(q.Key.Namespace, o, w)
		return result{code: http.StatusCreated, object: next, warnings: warnings}, err
	}
	next, err := r.update(q, w, func(*unstructured.Unstructured) (*unstructured.Unstructured, error) {
		if is, wanted := r.objects[q.Key].object.GetUID(), o.GetUID(); wanted != "" && is != wanted {
			return nil, r.otherUID(q, wanted, is)
		}
		return o, nil
	})
	return result{code: http.StatusOK, object: next, warnings: warnings}, err
}

func (r *Resource) conflict(name string, err error) error {
	return apierrors.NewConflict(r.groupResource(), name, err)
}

// otherUID is the error for an update of an object that is another one by now.
func (r *Resource) otherUID(q *Request, wanted, is types.UID) error {
	return r.conflict(q.Key.Name, fmt.Errorf(
		"StorageError: invalid object, Code: 4, Key: /registry/%s/%s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: %s, UID in object meta: %s",
		r.Plural, q.Key, wanted, is))
}

// errModified has the words of k8s.io/apiserver/pkg/registry/generic/registry,
// OptimisticLockErrorMsg.
var errModified = errors.New("the object has been modified; please apply your changes to the latest version and try again")

// update has a change made to an object. change gets a copy of what is stored. mu is held.
func (r *Resource) update(q *Request, w *writing, change func(now *unstructured.Unstructured) (*unstructured.Unstructured, error)) (*state, error) {
	now := r.objects[q.Key]
	if now == nil {
		return nil, r.notFound(q.Key.Name)
	}
	next, err := change(now.object.DeepCopy())
	if err != nil {
		return nil, err
	}
	switch version := next.GetResourceVersion(); {
	case version == "" && !r.unconditional:
		named := schema.GroupKind{Group: r.Group, Kind: r.Plural} // as upstream has it
		return nil, apierrors.NewInvalid(named, q.Key.Name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"),
		})
	case version != "" && version != now.object.GetResourceVersion():
		return nil, r.conflict(q.Key.Name, errModified)
	}
	next = r.keep(now.object, next, q.Subresource)
	errs := apivalidation.ValidateObjectMetaAccessor(next, r.Namespaced, r.validName, field.NewPath("metadata"))
	errs = append(errs, apivalidation.ValidateObjectMetaAccessorUpdate(next, now.object, field.NewPath("metadata"))...)
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(r.GroupVersionKind().GroupKind(), q.Key.Name, errs)
	}
	if next, err = r.track(q, now.object, next, w.manager); err != nil {
		return nil, err
	}
	switch {
	case reflect.DeepEqual(now.object.Object, next.Object):
		return now, nil // nothing is written
	case w.dry:
		return &state{object: next}, nil
	case r.isFinalized(now.object, next):
		r.commit(r, wire.Deleted, next.DeepCopy())
		return &state{object: next}, nil // the answer is the requested state, at the version before
	}
	return r.commit(r, wire.Modified, next), nil
}

// keep returns what an update leads to: what the path does not name, and what clients
// cannot change, is as before.
func (r *Resource) keep(now, next *unstructured.Unstructured, subresource string) *unstructured.Unstructured {
	switch subresource {
	case "status":
		next = r.onlyStatus(now, next)
	case "finalize":
		finalizers, there, _ := unstructured.NestedFieldCopy(next.Object, "spec", "finalizers")
		next = now.DeepCopy()
		unstructured.RemoveNestedField(next.Object, "spec", "finalizers")
		if there {
			_ = unstructured.SetNestedField(next.Object, finalizers, "spec", "finalizers") // spec is an object: it was parsed
		}
	default:
		next = next.DeepCopy()
		if r.status {
			take(next, now, "status")
		}
	}
	next.SetResourceVersion(now.GetResourceVersion())
	next.SetUID(firstOf(next.GetUID(), now.GetUID()))
	next.SetCreationTimestamp(now.GetCreationTimestamp())
	next.SetDeletionTimestamp(now.GetDeletionTimestamp())
	next.SetDeletionGracePeriodSeconds(now.GetDeletionGracePeriodSeconds())
	next.SetGeneration(now.GetGeneration())
	if subresource != "status" && r.generation && (specification(now, next) || r.annotations && !reflect.DeepEqual(now.GetAnnotations(), next.GetAnnotations())) {
		next.SetGeneration(now.GetGeneration() + 1)
	}
	return next
}

// onlyStatus returns an object with another status, and with the owners of the fields that
// an apply has merged. Built-in kinds take other metadata with it.
func (r *Resource) onlyStatus(now, next *unstructured.Unstructured) *unstructured.Unstructured {
	result := now.DeepCopy()
	take(result, next, "status")
	result.SetManagedFields(next.GetManagedFields())
	if r.builtin {
		result.Object["metadata"] = next.DeepCopy().Object["metadata"]
		if r.annotations { // a Deployment's labels are not changed
			result.SetLabels(now.GetLabels())
		}
		if r.lifecycle == ofPods {
			result.SetOwnerReferences(now.GetOwnerReferences())
		}
	}
	return result
}

// take gives an object a field of another.
func take(into, from *unstructured.Unstructured, name string) {
	if value, there := from.DeepCopy().Object[name]; there {
		into.Object[name] = value
	} else {
		delete(into.Object, name)
	}
}

func firstOf[T comparable](a, b T) T {
	var none T
	if a != none {
		return a
	}
	return b
}

// specification reports whether two states differ in anything but metadata. keep has
// carried the status over where it is a subresource; elsewhere it counts like the rest.
func specification(a, b *unstructured.Unstructured) bool {
	for _, one := range [...]struct{ in, of *unstructured.Unstructured }{{a, b}, {b, a}} {
		for name, value := range one.of.Object {
			if name != "metadata" && !reflect.DeepEqual(value, one.in.Object[name]) {
				return true
			}
		}
	}
	return false
}

// isFinalized reports whether an update took away the last reason for keeping an object
// that is being deleted.
func (r *Resource) isFinalized(now, next *unstructured.Unstructured) bool {
	if now.GetDeletionTimestamp() == nil || len(next.GetFinalizers()) > 0 {
		return false
	}
	if grace := now.GetDeletionGracePeriodSeconds(); grace != nil && *grace != 0 {
		return false
	}
	return r.lifecycle != ofNamespaces || !holdsContent(next)
}

// holdsContent reports whether a Namespace is kept until its content is gone.
func holdsContent(namespace *unstructured.Unstructured) bool {
	finalizers, _, _ := unstructured.NestedSlice(namespace.Object, "spec", "finalizers")
	return len(finalizers) > 0
}
