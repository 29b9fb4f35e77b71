// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/discovery"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/workqueue"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "namespace-controller"

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many namespaces are worked on at a time.
	Workers int
	// Kinds is how many kinds are emptied at a time, for all namespaces together.
	Kinds int
	// Settle is how long API servers may take to learn that a namespace terminates.
	// A cluster with one API server needs none; 0 or less is none.
	Settle time.Duration
	// SyncPeriod is how often every namespace that is being deleted is reconciled again,
	// beside the times that its runs have named. 0 or less is never.
	SyncPeriod time.Duration
}

func (o Options) check() error {
	if o.Kinds < 1 {
		return fmt.Errorf("%d kinds at a time; want 1 or more", o.Kinds)
	}
	return controllers.CheckWorkers(o.Workers)
}

// Rights returns what the controller must be allowed to do.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces/status", "namespaces/finalize"}, Verbs: []string{"update"}},
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"list", "watch", "delete", "deletecollection"}},
		{NonResourceURLs: []string{"/api", "/api/*", "/apis", "/apis/*"}, Verbs: []string{"get"}},
	}
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (*controller.Controller, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	r := &reconciler{
		namespaces: cache.Informer[*corev1.Namespace](h),
		discover:   h.Client().Discover,
		content:    newContent(h.Client(), o.Kinds),
		vigils:     newVigils(h.Client(), h.Logger().With("controller", Name)),
		settle:     o.Settle,
	}
	c := controller.New(Name, r.reconcile,
		controller.For(r.namespaces, begins),
		controller.RateLimit(retries()),
		controller.Resync(max(o.SyncPeriod, 0)),
		controller.Workers(o.Workers),
	)
	c.Feed("content that went", r.vigils.run)
	return c, nil
}

// retries tries again sooner than the default: at least once a minute.
// Source: k8s.io/kubernetes/pkg/controller/namespace, nsControllerRateLimiter.
func retries() workqueue.Limiter[object.Key] {
	return workqueue.Backoff[object.Key](5*time.Millisecond, time.Minute)
}

// begins lets the events through with which the deletion of a namespace becomes
// this controller's business. Later ones, most of them its own writes, are no reason
// to look: every run that leaves something has named the time of the next.
func begins(e cache.Event[*corev1.Namespace]) bool {
	if e.Kind == cache.Deleted || !e.New.Meta().Deleting() {
		return false
	}
	if e.Kind != cache.Updated || !e.Old.Meta().Deleting() {
		return true
	}
	before, err := e.Old.Object()
	now, newer := e.New.Object()
	return err != nil || newer != nil || !ours(before) && ours(now)
}

// ours reports whether the namespace waits for this controller.
func ours(ns *corev1.Namespace) bool {
	return slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes)
}

type reconciler struct {
	namespaces cache.SharedInformer[*corev1.Namespace]
	discover   func(context.Context) ([]client.Served, error)
	content    *content
	vigils     *vigils
	settle     time.Duration

	mu        sync.Mutex
	sightings map[object.Key]sighting
}

// sighting is when a namespace was first seen to be terminating. Two clocks never
// agree, so that the time at which the server says it was deleted would not do.
type sighting struct {
	of types.UID
	at time.Time
}

// since returns how long ago the namespace was first seen to be terminating.
func (r *reconciler) since(ns *corev1.Namespace) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := object.KeyOf(ns)
	seen, known := r.sightings[key]
	if !known || seen.of != ns.UID {
		if r.sightings == nil {
			r.sightings = map[object.Key]sighting{}
		}
		seen = sighting{of: ns.UID, at: time.Now()}
		r.sightings[key] = seen
	}
	return time.Since(seen.at)
}

func (r *reconciler) forget(key object.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sightings, key)
}

// reconcile does the next step of the deletion of a namespace.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	if item := r.namespaces.Snapshot().Get(req.Key); !item.Exists() || !item.Meta().Deleting() {
		r.forget(req.Key)
		return controller.Result{}, nil
	}
	// What is deleted next cannot be restored, so the namespace is read from the server.
	ns, err := r.namespaces.Server().Get(ctx, req.Key)
	if apierrors.IsNotFound(err) {
		r.forget(req.Key)
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	if ns.DeletionTimestamp == nil || !ours(ns) {
		r.forget(req.Key)
		return controller.Result{}, nil
	}
	if ns, err = r.terminating(ctx, ns); apierrors.IsNotFound(err) {
		r.forget(req.Key) // another client has finalized it
		return controller.Result{}, nil
	} else if err != nil {
		return controller.Result{}, fmt.Errorf("marking namespace %s as terminating: %w", ns.Name, err)
	}

	found := r.empty(ctx, ns.Name, r.since(ns))
	if found.settling > 0 {
		return controller.Result{After: found.settling}, nil
	}
	if ns, err = r.say(ctx, ns, &found); apierrors.IsNotFound(err) {
		r.forget(req.Key)
		return controller.Result{}, nil
	} else if err != nil {
		return controller.Result{}, fmt.Errorf("writing the conditions of namespace %s: %w", req.Key.Name, err)
	}
	for _, reason := range found.reasons(ns) {
		controller.Because(ctx, reason)
	}
	r.vigils.begin(ctx, req.Key, found.left)
	if err := found.err(); err != nil {
		return controller.Result{}, fmt.Errorf("deleting the content of namespace %s: %w", req.Key.Name, err)
	}
	if wait := found.estimate(); wait > 0 {
		return controller.Result{After: wait/2 + time.Second}, nil
	}
	if err := r.finalize(ctx, ns); err != nil {
		return controller.Result{}, fmt.Errorf("finalizing namespace %s: %w", req.Key.Name, err)
	}
	r.forget(req.Key)
	return controller.Result{}, nil
}

// terminating sets the phase, where the server has not done so with the deletion.
func (r *reconciler) terminating(ctx context.Context, ns *corev1.Namespace) (*corev1.Namespace, error) {
	if ns.Status.Phase == corev1.NamespaceTerminating {
		return ns, nil
	}
	changed := ns.DeepCopy()
	changed.Status.Phase = corev1.NamespaceTerminating
	changed, err := r.namespaces.UpdateStatus(ctx, changed)
	if err != nil {
		return ns, err
	}
	return changed, nil
}

// empty deletes what is in the namespace, and returns what was found.
func (r *reconciler) empty(ctx context.Context, namespace string, age time.Duration) findings {
	var found findings
	kinds, err := r.discover(ctx)
	found.discovery = err
	kinds = deletable(kinds)
	if at := slices.IndexFunc(kinds, isPods); at >= 0 {
		left, err := r.content.remove(ctx, kinds[at], namespace, age)
		found.add(left, err)
		if err != nil || left.count() > 0 {
			return found
		}
		kinds = slices.Delete(kinds, at, at+1)
	}
	if age < r.settle {
		found.settling = r.settle - age
		return found
	}
	lefts, errs := make([]leftover, len(kinds)), make([]error, len(kinds))
	var emptied sync.WaitGroup
	for i, kind := range kinds {
		emptied.Go(func() { lefts[i], errs[i] = r.content.remove(ctx, kind, namespace, age) })
	}
	emptied.Wait()
	for i := range kinds {
		found.add(lefts[i], errs[i])
	}
	return found
}

// deletable returns the kinds whose objects are in namespaces and can be deleted, each object
// in one of them: two requests to delete all Events would only be in each other's way.
func deletable(kinds []client.Served) []client.Served {
	return slices.DeleteFunc(discovery.Once(kinds), func(k client.Served) bool { return !k.Namespaced || !k.Can("delete") })
}

func isPods(k client.Served) bool { return k.Group == "" && k.Plural == "pods" }

// say writes what was found into the conditions of the namespace, if it is new, and
// returns the namespace as written.
func (r *reconciler) say(ctx context.Context, ns *corev1.Namespace, found *findings) (*corev1.Namespace, error) {
	conditions, changed := withConditions(ns.Status.Conditions, found.conditions(), metav1.Now())
	if !changed || len(ns.Status.Conditions) == 0 && found.nothing() && goes(ns) {
		return ns, nil
	}
	ns = ns.DeepCopy()
	ns.Status.Conditions = conditions
	return r.namespaces.UpdateStatus(ctx, ns)
}

// goes reports whether the namespace is gone once it is finalized: it has no other
// finalizer.
func goes(ns *corev1.Namespace) bool { return len(ns.Finalizers) == 0 && len(ns.Spec.Finalizers) == 1 }

// finalize takes the finalizer away.
func (r *reconciler) finalize(ctx context.Context, ns *corev1.Namespace) error {
	ns = ns.DeepCopy()
	ns.Spec.Finalizers = slices.DeleteFunc(ns.Spec.Finalizers, func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
	_, err := r.namespaces.Sub("finalize").Update(ctx, object.KeyOf(ns), ns)
	if apierrors.IsNotFound(err) {
		return nil // another client did
	}
	return err
}

// findings are what a run learned of a namespace.
type findings struct {
	discovery error         // what could not be discovered
	failures  []error       // of kinds that could not be emptied
	left      []leftover    // what is left of kinds, none without objects
	settling  time.Duration // how long to wait before the rest can be checked
}

func (f *findings) add(left leftover, err error) {
	if err != nil {
		f.failures = append(f.failures, err)
	}
	if left.count() > 0 {
		f.left = append(f.left, left)
	}
}

// nothing reports whether the namespace was found empty and nothing went wrong.
func (f *findings) nothing() bool { return f.err() == nil && len(f.left) == 0 }

func (f *findings) err() error {
	return errors.Join(append([]error{f.discovery}, f.failures...)...)
}

// estimate is how long the slowest of what is left may take.
func (f *findings) estimate() (longest time.Duration) {
	for _, l := range f.left {
		longest = max(longest, l.estimate)
	}
	return longest
}
