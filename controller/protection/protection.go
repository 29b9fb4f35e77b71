// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package protection

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/events"
	"github.com/setpoint-io/setpoint/internal/shortlist"
	"github.com/setpoint-io/setpoint/object"
)

// Protection keeps objects of one kind from being removed while they are used. Its methods are
// safe for concurrent use if UsedBy is.
type Protection[T object.Object] struct {
	// Objects are the protected ones. The right to update them is needed.
	Objects cache.SharedInformer[T]
	// Finalizer keeps an object that is being deleted, and has the form "example.com/what-for".
	Finalizer string
	// UsedBy returns what uses an object that is being deleted, each as a kind and a name, such
	// as "Pod web-0"; it need not find more than one. The object may be removed if there is
	// none. The cache may not show a user yet that the server has: where that would do harm,
	// UsedBy reads from the server before it returns none.
	UsedBy func(ctx context.Context, o T) ([]string, error)
	// Recorder records an Event [InUse] about an object that is deleted while it is used, once
	// in the life of the process. It is nil for no Events.
	Recorder *events.Recorder
	// RemoveOnly leaves it to admission to add the finalizer. An object that was created
	// without it stays without it.
	RemoveOnly bool

	reported reported
}

// Reconcile is a [controller.Reconciler]. It adds the finalizer to an object that lacks it, and
// removes it from an object that is being deleted and not used.
func (p *Protection[T]) Reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	o, err := p.Objects.Get(req.Key)
	if apierrors.IsNotFound(err) {
		p.reported.forget(req.Key)
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	protected := slices.Contains(o.GetFinalizers(), p.Finalizer)
	switch {
	case o.GetDeletionTimestamp() != nil && protected:
		err = p.release(ctx, o)
	case o.GetDeletionTimestamp() == nil && !protected && !p.RemoveOnly:
		err = p.write(ctx, "adding", o, append(slices.Clone(o.GetFinalizers()), p.Finalizer))
	}
	if client.AbsentAt(err, req.Key) {
		err = nil
	}
	return controller.Result{}, err
}

// release removes the finalizer, unless the object is used. An event of its last user enqueues
// the object again.
func (p *Protection[T]) release(ctx context.Context, o T) error {
	users, err := p.UsedBy(ctx, o)
	if err != nil {
		return err
	}
	if len(users) > 0 {
		reason := p.reason(users)
		controller.Because(ctx, reason)
		controller.Logger(ctx).Debug("not removed yet", "reason", reason.Sentence())
		if p.Recorder != nil && p.reported.first(o) {
			p.Recorder.Normal(o, InUse, "Delete", "Not deleted yet: %s", reason.Sentence())
		}
		return nil
	}
	return p.write(ctx, "removing", o, slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool { return f == p.Finalizer }))
}

// write updates the finalizers. The update carries the version of the object that was judged: it
// is a conflict if the object has changed since.
func (p *Protection[T]) write(ctx context.Context, verb string, o T, finalizers []string) error {
	changed := o.DeepCopyObject().(T)
	changed.SetFinalizers(finalizers)
	if _, err := p.Objects.Update(ctx, changed); err != nil {
		return fmt.Errorf("%s the finalizer of %s %s: %w", verb, p.Objects.Kind(), object.KeyOf(o), err)
	}
	return nil
}

// InUse is the code of the reason why an object that is being deleted is not removed, and the
// reason of the Event about it.
const InUse = "InUse"

// mostNamed bounds the users that a reason names.
const mostNamed = 3

// reason says why an object keeps the finalizer.
func (p *Protection[T]) reason(users []string) controller.Reason {
	return controller.Reason{
		Code:   InUse,
		Text:   "it keeps the finalizer {finalizer}, because it is in use by {users}",
		Params: []controller.Param{{Name: "finalizer", Value: p.Finalizer}, {Name: "users", Value: shortlist.Join(users, mostNamed)}},
		Ends:   "the end of its last user",
	}
}
