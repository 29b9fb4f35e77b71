// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podwriter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller/owned"
	"github.com/setpoint-io/setpoint/object"
)

// nameTries is how many names are tried for a Pod while other owners' Pods have them.
// Source: k8s.io/apiserver/pkg/registry/generic/registry,
// maxNameGenerationCreateAttempts.
const nameTries = 8

// Create creates Pods of an owner and returns those that exist then, in the order of wanted.
// used reports whether the controller has seen a Pod of this name in the owner's namespace.
// The error is a [*CreateError]; Create also returns the Pods that it has created.
// It does not change the Pods in wanted. Of the fields that the server fills in, the
// returned Pods have those of the metadata.
func (w *Writer) Create(ctx context.Context, owner Owner, wanted []*corev1.Pod, used func(name string) bool) ([]*corev1.Pod, error) {
	named := w.names.give(owner, wanted, w.slot, time.Now(), used)
	made := make([]*corev1.Pod, len(named))
	var failed atomic.Int32
	_, err := owned.SlowStart(ctx, len(named), 1, func(ctx context.Context, i int) (err error) {
		made[i], err = w.createPrepared(ctx, owner, named[i], wanted[i].Name != "")
		if err != nil {
			failed.Add(1)
		}
		return err
	})
	made = slices.DeleteFunc(made, func(pod *corev1.Pod) bool { return pod == nil })
	if err == nil || client.NamespaceGone(err) {
		return made, nil
	}
	return made, &CreateError{Err: err, Failed: int(failed.Load())}
}

// CreateError is the error of [Writer.Create].
type CreateError struct {
	Err    error // the first failure
	Failed int   // how many creates failed; those that the slow start did not try are not among them
}

// Error returns the text of the first failure.
func (e *CreateError) Error() string { return e.Err.Error() }

// Unwrap returns the first failure.
func (e *CreateError) Unwrap() error { return e.Err }

// createPrepared creates a Pod once the function of [Writer.BeforeCreate] has prepared it.
func (w *Writer) createPrepared(ctx context.Context, owner Owner, pod *corev1.Pod, hasName bool) (*corev1.Pod, error) {
	if err := w.beforeCreate(ctx, owner, pod); err != nil {
		w.refused(ctx, owner, pod, err)
		return nil, err
	}
	if hasName {
		return w.createNamed(ctx, owner, pod)
	}
	return w.createGenerated(ctx, owner, pod)
}

// create sends one create. What the server adds to spec and status is not returned.
func (w *Writer) create(ctx context.Context, owner Owner, pod *corev1.Pod) (*corev1.Pod, error) {
	made, err := w.pods.Create(ctx, pod, client.MetadataAnswer())
	if err != nil {
		return nil, err
	}
	w.normal(owner, SuccessfulCreate, creating, pod)
	created := *pod
	created.ObjectMeta = made.ObjectMeta
	return &created, nil
}

// refused records the Event of a create that failed.
func (w *Writer) refused(ctx context.Context, owner Owner, pod *corev1.Pod, err error) {
	if !client.NamespaceGone(err) && ctx.Err() == nil {
		w.warning(owner, FailedCreate, creating, pod, err)
	}
}

// createNamed creates a Pod under the name that it has.
func (w *Writer) createNamed(ctx context.Context, owner Owner, pod *corev1.Pod) (*corev1.Pod, error) {
	made, err := w.create(ctx, owner, pod)
	if err == nil {
		return made, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		w.refused(ctx, owner, pod, err)
		return nil, err
	}
	there, getErr := w.pods.Get(ctx, object.KeyOf(pod))
	if getErr == nil && metav1.IsControlledBy(there, owner.Object) {
		return there, nil // an earlier create, whose answer was lost
	}
	w.refused(ctx, owner, pod, err)
	return nil, err
}

// createGenerated creates a Pod under a name that was generated, or under another one.
func (w *Writer) createGenerated(ctx context.Context, owner Owner, pod *corev1.Pod) (*corev1.Pod, error) {
	for try := 1; ; try++ {
		made, err := w.create(ctx, owner, pod)
		if err == nil {
			w.names.made(owner.key(), pod.Name)
			return made, nil
		}
		if !apierrors.IsAlreadyExists(err) || try == nameTries {
			w.keepName(owner, pod, err)
			w.refused(ctx, owner, pod, err)
			return nil, err
		}
		// An earlier create of ours, whose answer was lost, or another owner's Pod.
		there, err := w.pods.Get(ctx, object.KeyOf(pod))
		if err != nil {
			w.keepName(owner, pod, err)
			return nil, fmt.Errorf("finding out whose Pod %s is: %w", object.KeyOf(pod), err)
		}
		if metav1.IsControlledBy(there, owner.Object) {
			// The name stays open until the cache shows the Pod. Until then, a run could
			// create the Pod again.
			w.keepName(owner, pod, nil)
			return there, nil
		}
		w.names.made(owner.key(), pod.Name)
		other := *pod
		other.Name = drawName(pod.GenerateName)
		pod = &other
	}
}

// keepName has a later run use a name again. After a refusal, the request is not carried out.
// After every other failure, it may be.
func (w *Writer) keepName(owner Owner, pod *corev1.Pod, err error) {
	var until time.Time
	var status apierrors.APIStatus
	if err != nil && (!errors.As(err, &status) || status.Status().Code >= http.StatusInternalServerError) {
		until = time.Now().Add(dueTime)
	}
	w.names.keep(owner.key(), owner.Object.GetUID(), pod.Name, w.slot(pod), until)
}
