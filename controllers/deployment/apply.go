// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package deployment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// apply does what a plan says. Where a set cannot be changed the rest is left for another
// run. The status is written anyway: it reports what has been observed.
func (r *reconciler) apply(ctx context.Context, d *appsv1.Deployment, p plan, now time.Time) error {
	if p.rollback != nil {
		_, err := r.deployments.Update(ctx, p.rollback)
		if apierrors.IsNotFound(err) {
			return nil // it went meanwhile
		}
		if err != nil {
			return fmt.Errorf("rolling back: %w", err)
		}
		r.recorder.Record(d, p.events...)
		return nil
	}
	if p.create != nil {
		done, err := r.create(ctx, d, p, now)
		if !done {
			return err
		}
	}
	err := r.change(ctx, d, p)
	r.recorder.Record(d, p.events...)
	return errors.Join(err, r.writeStatus(ctx, d, p.status, p.revision))
}

// create makes the set of the Deployment's template. It reports whether the rest
// of the plan can be done.
func (r *reconciler) create(ctx context.Context, d *appsv1.Deployment, p plan, now time.Time) (bool, error) {
	_, err := r.sets.Create(ctx, p.create)
	switch {
	case err == nil:
		if replicas := size(p.create); replicas > 0 {
			r.recorder.Record(d, scaled(p.create, 0, replicas))
		}
		return true, nil
	case apierrors.IsAlreadyExists(err):
		return r.collide(ctx, d, p)
	case client.NamespaceGone(err):
		// It will not get better, and the Deployment will be deleted.
		r.log.Debug("not creating a ReplicaSet, the namespace is going", "object", object.KeyOf(d).String(), "error", err)
		return false, nil
	}
	failure := notCreated(p.create.Name, err)
	r.recorder.Record(d, failure)
	status := withoutCreation(d, p.status, failure, now)
	return false, errors.Join(fmt.Errorf("creating ReplicaSet %s: %w", p.create.Name, err),
		r.writeStatus(ctx, d, status, d.Annotations[revisionAnnotation]))
}

// collide reads the set that already has the name of the set to be created. If it is that
// very set, which the informer has not shown yet, all is well. Otherwise two templates
// have one hash, and the next run tries another name.
func (r *reconciler) collide(ctx context.Context, d *appsv1.Deployment, p plan) (bool, error) {
	live, err := r.sets.Server().Get(ctx, object.KeyOf(p.create))
	if err != nil {
		return false, fmt.Errorf("looking at ReplicaSet %s, which exists already: %w", p.create.Name, err)
	}
	if owner := object.ControllerOf(live.OwnerReferences); owner != nil && owner.UID == d.UID &&
		sameTemplate(&live.Spec.Template, &d.Spec.Template) {
		return true, nil
	}
	status := *d.Status.DeepCopy()
	status.CollisionCount = raised(d.Status.CollisionCount)
	r.log.Info("another ReplicaSet has the name that the template hashes to; trying another name",
		"object", object.KeyOf(d).String(), "replicaSet", p.create.Name, "collisionCount", *status.CollisionCount)
	return false, r.writeStatus(ctx, d, status, d.Annotations[revisionAnnotation])
}

// change writes the new sizes of sets, and removes those that are of no use.
func (r *reconciler) change(ctx context.Context, d *appsv1.Deployment, p plan) error {
	for _, c := range p.changes {
		patch, err := client.MergePatch(c.patch())
		if err != nil {
			return err
		}
		_, err = r.sets.Patch(ctx, object.KeyOf(c.set), patch)
		if apierrors.IsNotFound(err) {
			return nil // what follows was decided with it; its end is a reason to look again
		}
		if err != nil {
			return fmt.Errorf("changing ReplicaSet %s: %w", c.set.Name, err)
		}
		if before := size(c.set); c.replicas != before {
			r.recorder.Record(d, scaled(c.set, before, c.replicas))
		}
	}
	for _, set := range p.remove {
		// The version too: the set must not have been scaled up since it was read.
		err := r.sets.Delete(ctx, object.KeyOf(set), client.IfUID(set.UID), client.IfVersion(object.Version(set.ResourceVersion)))
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("removing ReplicaSet %s: %w", set.Name, err)
		}
	}
	return nil
}

// patch is the change as a merge patch of the set as it was read. For another set, or
// another version of it, the patch is a conflict. A patch leaves alone what a newer
// server may have put into the object.
func (c *change) patch() map[string]any {
	metadata := map[string]any{"uid": c.set.UID, "resourceVersion": c.set.ResourceVersion}
	if len(c.annotations) > 0 {
		metadata["annotations"] = c.annotations
	}
	spec := map[string]any{}
	if c.replicas != size(c.set) {
		spec["replicas"] = c.replicas
	}
	if c.minReadySeconds != c.set.Spec.MinReadySeconds {
		spec["minReadySeconds"] = c.minReadySeconds
	}
	patch := map[string]any{"metadata": metadata}
	if len(spec) > 0 {
		patch["spec"] = spec
	}
	return patch
}

// writeStatus writes status and revision if either has changed. The API server
// takes annotations along with a status, and does not count them as a new
// generation as it would otherwise.
func (r *reconciler) writeStatus(ctx context.Context, d *appsv1.Deployment, status appsv1.DeploymentStatus, revision string) error {
	if d.Annotations[revisionAnnotation] == revision && apiequality.Semantic.DeepEqual(d.Status, status) {
		return nil
	}
	next := *d
	next.Status = status
	if d.Annotations[revisionAnnotation] != revision {
		next.Annotations = maps.Clone(d.Annotations)
		if next.Annotations == nil {
			next.Annotations = map[string]string{}
		}
		next.Annotations[revisionAnnotation] = revision
	}
	_, err := r.deployments.UpdateStatus(ctx, &next)
	if err != nil && !apierrors.IsNotFound(err) { // it went meanwhile
		return fmt.Errorf("writing the status: %w", err)
	}
	return nil
}
