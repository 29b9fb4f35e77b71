// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storageversionmigrator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	migrationv1 "k8s.io/api/storagemigration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/discovery"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name, and that of the field manager of its patches.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "storage-version-migrator-controller"

const (
	// patience is how long a resource that is not served is looked for, and lookAgain how often.
	// Source of the former: k8s.io/kubernetes/pkg/controller/storageversionmigrator.
	patience  = time.Minute
	lookAgain = 5 * time.Second

	// tellEach is the time between two messages of a migration that makes progress.
	tellEach = 10 * time.Second

	// soon is when a run follows that goes on with the patches of the one before.
	soon = time.Millisecond
)

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many resources are migrated at a time.
	Workers int
}

// kind is what StorageVersionMigrations are.
var kind = object.Resource{Group: migrationv1.GroupName, Version: "v1", Plural: "storageversionmigrations", Kind: "StorageVersionMigration"}

// Rights returns what the controller must be allowed to do. The caller owns the result. Users may
// migrate any resource, so it needs to list and patch all of them.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"list", "patch"}},
		{APIGroups: []string{kind.Group}, Resources: []string{kind.Plural}, Verbs: []string{"watch"}},
		{APIGroups: []string{definitions.Group}, Resources: []string{definitions.Plural}, Verbs: []string{"get"}},
	}
}

type reconciler struct {
	migrations cache.SharedInformer[*migrationv1.StorageVersionMigration]
	client     *client.Client
	now        func() time.Time

	mu    sync.Mutex
	works map[object.Key]*work // by the key of the resource
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (*controller.Controller, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	r := &reconciler{
		migrations: cache.Informer[*migrationv1.StorageVersionMigration](h),
		client:     h.Client(),
		now:        time.Now,
		works:      map[object.Key]*work{},
	}
	return controller.New(Name, r.reconcile,
		controller.Watches(r.migrations, resourceOf),
		controller.Workers(o.Workers),
	), nil
}

// resourceOf adds the key of the resource that a migration names: its group as the namespace, and
// its plural as the name.
func resourceOf(item cache.Item[*migrationv1.StorageVersionMigration], add func(object.Key)) {
	if m, err := item.Object(); err == nil {
		add(object.Key{Namespace: m.Spec.Resource.Group, Name: m.Spec.Resource.Resource})
	}
}

// reconcile takes the next step of the migrations of one resource.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	resource := metav1.GroupResource{Group: req.Key.Namespace, Resource: req.Key.Name}
	all, err := r.migrationsOf(resource)
	if err != nil {
		return controller.Result{}, err
	}
	p := decide(all)
	explain(ctx, p)
	for _, m := range p.ended {
		if err := r.close(ctx, m); err != nil {
			return controller.Result{}, err
		}
	}
	if p.active == nil {
		r.forget(req.Key)
		// A running migration may have been deleted.
		return controller.Result{}, r.finish(ctx, resource, false)
	}
	if !isRunning(p.active) {
		if err := r.begin(ctx, resource, p.active.Name); err != nil {
			return controller.Result{}, err
		}
		return controller.Result{}, r.write(ctx, p.active, func(m *migrationv1.StorageVersionMigration) { running(m, progress{}, nil) })
	}
	return r.migrate(ctx, req.Key, p.active)
}

func (r *reconciler) migrationsOf(resource metav1.GroupResource) ([]*migrationv1.StorageVersionMigration, error) {
	var all []*migrationv1.StorageVersionMigration
	for _, item := range r.migrations.All() {
		m, err := item.Object()
		if err != nil {
			return nil, err
		}
		if m.Spec.Resource == resource {
			all = append(all, m)
		}
	}
	return all, nil
}

// close ends a migration that has succeeded or failed: in the definition of its resource first,
// since the condition Running is what is closed last.
func (r *reconciler) close(ctx context.Context, m *migrationv1.StorageVersionMigration) error {
	if err := r.finish(ctx, m.Spec.Resource, is(m, migrationv1.MigrationSucceeded)); err != nil {
		return err
	}
	return r.write(ctx, m, func(m *migrationv1.StorageVersionMigration) {
		set(m, migrationv1.MigrationRunning, metav1.ConditionFalse, reasonCompleted, "Migration completed")
	})
}

// migrate takes the next step of a migration that runs.
func (r *reconciler) migrate(ctx context.Context, key object.Key, m *migrationv1.StorageVersionMigration) (controller.Result, error) {
	w := r.workOf(key, m)
	if w == nil {
		served, problem, err := r.served(ctx, m)
		if err != nil {
			return controller.Result{}, err
		}
		if served == nil {
			return r.notServed(ctx, m, problem)
		}
		w = &work{of: m.UID, resource: *served}
		if m.Status.ResourceVersion == "" {
			return controller.Result{}, r.checkpoint(ctx, m, w.resource)
		}
		newest, err := checkpointOf(m)
		if err == nil {
			err = r.list(ctx, w, newest)
		}
		if _, unusable := errors.AsType[*unusableVersionError](err); unusable {
			return controller.Result{}, r.write(ctx, m, func(m *migrationv1.StorageVersionMigration) { fail(m, unhandled(err)) })
		}
		if err != nil {
			return controller.Result{}, err
		}
		r.remember(key, w)
	}
	err := r.patchSome(ctx, w)
	switch {
	case ctx.Err() != nil:
		return controller.Result{}, ctx.Err()
	case err != nil && passes(err):
		return controller.Result{}, errors.Join(err, r.tellTrouble(ctx, m, w, err))
	case err != nil:
		message := fmt.Sprintf("%d/%d not yet migrated. %s", len(w.objects), w.total, unhandled(err))
		return controller.Result{}, r.write(ctx, m, func(m *migrationv1.StorageVersionMigration) {
			running(m, w.progress(), nil)
			fail(m, message)
		})
	case len(w.objects) > 0:
		w.troubled = false
		return controller.Result{After: soon}, r.tell(ctx, m, w)
	}
	return controller.Result{}, r.write(ctx, m, func(m *migrationv1.StorageVersionMigration) {
		running(m, w.progress(), nil)
		set(m, migrationv1.MigrationSucceeded, metav1.ConditionTrue, reasonSucceeded, "Migration completed")
	})
}

// unhandled is the message of a failure. Source of its first words:
// k8s.io/kubernetes/pkg/controller/storageversionmigrator, failMigration.
func unhandled(err error) string {
	return fmt.Sprintf("migration encountered unhandled error: %v", err)
}

// checkpoint writes the version up to which objects are migrated.
func (r *reconciler) checkpoint(ctx context.Context, m *migrationv1.StorageVersionMigration, resource object.Resource) error {
	version, err := r.version(ctx, resource)
	if err != nil {
		return err
	}
	_, err = parseVersion(version)
	return r.write(ctx, m, func(m *migrationv1.StorageVersionMigration) {
		if err != nil {
			fail(m, fmt.Sprintf("latest resourceVersion for %s is not valid: %v", resource, err))
			return
		}
		m.Status.ResourceVersion = version
	})
}

// checkpointOf returns the version up to which objects are migrated. Any client that may write the
// status may have written it.
func checkpointOf(m *migrationv1.StorageVersionMigration) (object.Version, error) {
	version, err := parseVersion(m.Status.ResourceVersion)
	if err != nil {
		return "", &unusableVersionError{fmt.Errorf("status.resourceVersion: %w", err)}
	}
	return version, nil
}

// parseVersion returns a resourceVersion that objects can be compared with.
func parseVersion(text string) (object.Version, error) {
	version, err := object.ParseVersion(text)
	if err == nil && version.IsZero() {
		return "", fmt.Errorf("resourceVersion %q is not that of a list", text)
	}
	return version, err
}

// served returns how the server serves the resource of a migration. It is nil with a problem if the
// server does not serve the resource, or not with what a migration needs.
func (r *reconciler) served(ctx context.Context, m *migrationv1.StorageVersionMigration) (*object.Resource, string, error) {
	resource := m.Spec.Resource
	found, err := discovery.Ask(ctx, r.client.Discover)
	for _, s := range found {
		if s.Group != resource.Group || s.Plural != resource.Resource {
			continue
		}
		for _, verb := range []string{"update", "patch", "list"} {
			if !s.Can(verb) {
				return nil, fmt.Sprintf("the server does not let clients %s %s: a migration needs the verbs update, patch and list", verb, s.Resource), nil
			}
		}
		return &s.Resource, "", nil
	}
	if err != nil { // the resource may be among those that are not known
		return nil, "", fmt.Errorf("looking for the resource %s: %w", resource.String(), err)
	}
	return nil, "", nil
}

// notServed waits for a resource, and fails a migration that has waited long enough or that has
// another problem.
func (r *reconciler) notServed(ctx context.Context, m *migrationv1.StorageVersionMigration, problem string) (controller.Result, error) {
	if problem == "" {
		age := r.now().Sub(m.CreationTimestamp.Time)
		if age < patience {
			controller.Because(ctx, controller.Reason{
				Code: codeNotServed, Text: "the server does not serve the resource {resource}; after a minute the migration fails",
				Params: controller.With("resource", m.Spec.Resource.String()), Ends: "the server serves it", About: about(m),
			})
			return controller.Result{After: min(lookAgain, patience-age)}, nil
		}
		problem = fmt.Sprintf("resource %s does not exist in discovery", m.Spec.Resource.String())
	}
	return controller.Result{}, r.write(ctx, m, func(m *migrationv1.StorageVersionMigration) { fail(m, problem) })
}

// tell writes now and then how far a migration is.
func (r *reconciler) tell(ctx context.Context, m *migrationv1.StorageVersionMigration, w *work) error {
	now := r.now()
	if now.Sub(w.written) < tellEach {
		return nil
	}
	w.written = now
	return r.write(ctx, m, func(m *migrationv1.StorageVersionMigration) { running(m, w.progress(), nil) })
}

// tellTrouble writes an error that passes, and then writes now and then what it is. The status is not
// written after each failure: each write starts a run, whose failure may name another object.
func (r *reconciler) tellTrouble(ctx context.Context, m *migrationv1.StorageVersionMigration, w *work, err error) error {
	now := r.now()
	if w.troubled && now.Sub(w.written) < tellEach {
		return nil
	}
	failed := r.write(ctx, m, func(m *migrationv1.StorageVersionMigration) { running(m, w.progress(), err) })
	if failed == nil {
		w.troubled, w.written = true, now
	}
	return failed
}

// workOf returns what the controller remembers of a migration, or nil.
func (r *reconciler) workOf(key object.Key, m *migrationv1.StorageVersionMigration) *work {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.works[key]; w != nil && w.of == m.UID {
		return w
	}
	return nil
}

func (r *reconciler) remember(key object.Key, w *work) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.written = r.now()
	r.works[key] = w
}

func (r *reconciler) forget(key object.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.works, key)
}
