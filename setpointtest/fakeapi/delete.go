// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/wire"
)

// delete deletes an object, or begins to.
func (r *Resource) delete(q *Request, body []byte) (result, error) {
	options, err := q.deleteOptions(body)
	if err != nil {
		return result{}, err
	}
	if errs := metav1validation.ValidateDeleteOptions(options); len(errs) > 0 {
		return result{}, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("DeleteOptions").GroupKind(), "", errs)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.end(q.Key, options)
}

// deleteCollection deletes what a list would return.
func (r *Resource) deleteCollection(q *Request, a *answer, body []byte) (result, error) {
	options, err := q.deleteOptions(body)
	if err != nil {
		return result{}, err
	}
	if errs := metav1validation.ValidateDeleteOptions(options); len(errs) > 0 {
		return result{}, apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("DeleteOptions").GroupKind(), "", errs)
	}
	all, err := r.list(q, a)
	if err != nil {
		return result{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range all.list.items {
		if _, err := r.end(object.KeyOf(o.object), options.DeepCopy()); err != nil && !apierrors.IsNotFound(err) {
			return result{}, err
		}
	}
	return all, nil
}

// end deletes an object as far as its finalizers and its grace period allow. mu is held.
//
// Source of the rules: k8s.io/apiserver/pkg/registry/rest, BeforeDelete, and
// pkg/registry/generic/registry, Store.Delete.
func (r *Resource) end(key object.Key, options *metav1.DeleteOptions) (result, error) {
	now := r.objects[key]
	if now == nil {
		return result{}, r.notFound(key.Name)
	}
	if err := r.meets(now.object, options.Preconditions); err != nil {
		return result{}, err
	}
	next := now.object.DeepCopy()
	if r.lifecycle == ofNamespaces && (next.GetDeletionTimestamp() == nil || holdsContent(next)) {
		return r.terminate(now, next, options), nil
	}
	graceful, pending := r.grace(next, options)
	if pending {
		return r.deleted(now, now), nil
	}
	next.SetFinalizers(withPolicy(next.GetFinalizers(), options))
	if len(next.GetFinalizers()) > 0 && !graceful {
		markDeleted(next)
	}
	if len(next.GetFinalizers()) > 0 || graceful && *next.GetDeletionGracePeriodSeconds() > 0 {
		return result{code: http.StatusOK, object: r.write(now, next, options)}, nil
	}
	if dry(options.DryRun) {
		return r.deleted(now, now), nil
	}
	return r.deleted(now, r.commit(r, wire.Deleted, next)), nil
}

// write stores the next state of an object that is being deleted. mu is held.
func (r *Resource) write(now *state, next *unstructured.Unstructured, options *metav1.DeleteOptions) *state {
	switch {
	case reflect.DeepEqual(now.object.Object, next.Object):
		return now
	case dry(options.DryRun):
		return &state{object: next}
	}
	return r.commit(r, wire.Modified, next)
}

// deleted is the answer to a deletion: the object, or a Status that names it.
func (r *Resource) deleted(was, last *state) result {
	if r.returnsGone {
		return result{code: http.StatusOK, object: last}
	}
	return result{status: &metav1.Status{Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{
		Name: was.object.GetName(), Group: r.Group, Kind: r.Plural, UID: was.object.GetUID(),
	}}}
}

// meets checks the preconditions of a deletion.
func (r *Resource) meets(now *unstructured.Unstructured, p *metav1.Preconditions) error {
	refuse := func(what string, want, have any, then string) error {
		detail := fmt.Errorf("the %s in the precondition (%v) does not match the %s in record (%v). The object might have been %s", what, want, what, have, then)
		resource := r.groupResource()
		resource.Resource = r.Kind // as upstream has it
		if r.lifecycle == ofNamespaces {
			resource = r.groupResource()
			detail = fmt.Errorf("Precondition failed: %s in precondition: %v, %s in object meta: %v", what, want, what, have) //nolint:staticcheck // upstream's words
		}
		return apierrors.NewConflict(resource, now.GetName(), detail)
	}
	switch {
	case p == nil:
	case p.UID != nil && *p.UID != now.GetUID():
		return refuse("UID", *p.UID, now.GetUID(), "deleted and then recreated")
	case p.ResourceVersion != nil && *p.ResourceVersion != now.GetResourceVersion():
		return refuse("ResourceVersion", *p.ResourceVersion, now.GetResourceVersion(), "modified")
	}
	return nil
}

// terminate begins the end of a Namespace, which its controller completes.
func (r *Resource) terminate(now *state, next *unstructured.Unstructured, options *metav1.DeleteOptions) result {
	if next.GetDeletionTimestamp() == nil {
		at := metav1.Now()
		next.SetDeletionTimestamp(&at)
		next.SetFinalizers(withPolicy(next.GetFinalizers(), options))
		_ = unstructured.SetNestedField(next.Object, "Terminating", "status", "phase") // status is an object: it was parsed
	}
	return result{code: http.StatusOK, object: r.write(now, next, options)}
}

// grace begins the graceful deletion of a Pod, or shortens it. pending means that the
// deletion is under way and nothing changes. A Pod that names no grace period has none: a
// real server would have given it 30 s by default, and a kubelet would end it.
func (r *Resource) grace(o *unstructured.Unstructured, options *metav1.DeleteOptions) (graceful, pending bool) {
	wanted := options.GracePeriodSeconds
	if wanted != nil && *wanted < 0 {
		one := int64(1)
		wanted = &one
	}
	if r.lifecycle != ofPods {
		return false, false
	}
	if at := o.GetDeletionTimestamp(); at != nil {
		left := o.GetDeletionGracePeriodSeconds()
		switch {
		case left == nil || *left == 0:
			return false, false
		case wanted == nil || *wanted >= *left:
			return false, true
		}
		period := *wanted
		end := at.Add(time.Duration(period-*left) * time.Second)
		if now := time.Now(); end.Before(now) {
			if end = now; period != 0 {
				period = 1
			}
		}
		setDeletion(o, end, period)
		return true, false
	}
	period, _, _ := unstructured.NestedInt64(o.Object, "spec", "terminationGracePeriodSeconds")
	if wanted != nil {
		period = *wanted
	}
	node, _, _ := unstructured.NestedString(o.Object, "spec", "nodeName")
	phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
	if node == "" || phase == "Failed" || phase == "Succeeded" {
		period = 0
	}
	if o.GetGeneration() > 0 {
		o.SetGeneration(o.GetGeneration() + 1)
	}
	setDeletion(o, time.Now().Add(time.Duration(period)*time.Second), period)
	return true, false
}

func setDeletion(o *unstructured.Unstructured, at time.Time, period int64) {
	t := metav1.NewTime(at)
	o.SetDeletionTimestamp(&t)
	o.SetDeletionGracePeriodSeconds(&period)
}

// markDeleted is for objects with finalizers and without a grace period.
func markDeleted(o *unstructured.Unstructured) {
	at := o.GetDeletionTimestamp()
	if at == nil && o.GetGeneration() > 0 {
		o.SetGeneration(o.GetGeneration() + 1)
	}
	now := metav1.Now()
	if at == nil || at.After(now.Time) {
		at = &now
	}
	setDeletion(o, at.Time, 0)
}

// withPolicy returns the finalizers of an object that is deleted: those of the garbage
// collector are as the options say.
func withPolicy(finalizers []string, options *metav1.DeleteOptions) []string {
	wanted := ""
	switch {
	case options.OrphanDependents != nil: //nolint:staticcheck // old clients send it
		if *options.OrphanDependents { //nolint:staticcheck // as above
			wanted = metav1.FinalizerOrphanDependents
		}
	case options.PropagationPolicy == nil:
		return finalizers
	case *options.PropagationPolicy == metav1.DeletePropagationOrphan:
		wanted = metav1.FinalizerOrphanDependents
	case *options.PropagationPolicy == metav1.DeletePropagationForeground:
		wanted = metav1.FinalizerDeleteDependents
	}
	if wanted != "" && slices.Contains(finalizers, wanted) {
		return finalizers
	}
	kept := slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
	if wanted != "" {
		kept = append(kept, wanted)
	}
	return kept
}
