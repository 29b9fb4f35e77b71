// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplanetest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// pristine is the state of a cluster before tests use it.
type pristine map[types.UID]thing

// thing is an object, and what must be the same afterwards.
type thing struct {
	resource object.Resource
	key      object.Key
	going    bool // it is being deleted: finalizers keep it
	state    string
	collects bool // all objects of its kind in a namespace can be deleted by one request
}

func (t thing) String() string { return fmt.Sprintf("%s %s", t.resource, t.key) }

// record lists all objects of all kinds. An object that is served by several
// groups is found once, by its UID.
func record(ctx context.Context, c *client.Client) (pristine, error) {
	kinds, err := c.Discover(ctx)
	if err != nil {
		return nil, fmt.Errorf("recording what is in the cluster: %w", err)
	}
	all := pristine{}
	for _, kind := range kinds {
		if !kind.Can("list") || !kind.Can("delete") {
			continue
		}
		objects, _, err := client.ForResource[*metav1.PartialObjectMetadata](c, kind.Resource).List(ctx, client.Selection{MetadataOnly: true})
		if apierrors.IsNotFound(err) {
			continue // a custom kind that went in the meantime
		}
		if err != nil {
			return nil, fmt.Errorf("recording what is in the cluster: %w", err)
		}
		for _, o := range objects {
			all[o.UID] = thing{
				resource: kind.Resource, key: object.KeyOf(o),
				going: o.DeletionTimestamp != nil, collects: kind.Can("deletecollection"), state: o.ResourceVersion,
			}
		}
	}
	return all, all.looksPast(ctx, c)
}

// looksPast leaves out of the states what changes without a test: the simulated kubelets write
// the status of their nodes, and the server renews its Lease.
func (p pristine) looksPast(ctx context.Context, c *client.Client) error {
	nodes, _, err := client.For[*corev1.Node](c).List(ctx, client.Selection{})
	if err != nil {
		return fmt.Errorf("recording what is in the cluster: %w", err)
	}
	for _, node := range nodes {
		spec, err := json.Marshal([]any{node.Labels, node.Annotations, node.Spec})
		if err != nil {
			return fmt.Errorf("recording node %s: %w", node.Name, err)
		}
		if t, ok := p[node.UID]; ok {
			t.state = string(spec)
			p[node.UID] = t
		}
	}
	for uid, t := range p {
		if t.resource.Plural == "leases" {
			t.state = ""
			p[uid] = t
		}
	}
	return nil
}

// restore deletes the objects that were created since, and returns an error if an older object
// has changed or is gone. It does not change such an object back.
func (p pristine) restore(ctx context.Context, c *client.Client) error {
	for {
		now, err := record(ctx, c)
		if err != nil {
			return err
		}
		if err := p.unchanged(now); err != nil {
			return err
		}
		maps.DeleteFunc(now, func(uid types.UID, _ thing) bool { _, ok := p[uid]; return ok })
		if len(now) == 0 {
			return nil
		}
		if err := now.remove(ctx, c, p.namespaces()); err != nil {
			return fmt.Errorf("%d objects of the tests are left: %w", len(now), err)
		}
	}
}

// unchanged returns an error that names an older object which has changed or is gone.
func (p pristine) unchanged(now pristine) error {
	for uid, was := range p {
		is, ok := now[uid]
		switch {
		case !ok:
			return fmt.Errorf("%s was deleted by a test", was)
		case is.state != was.state:
			return fmt.Errorf("%s was changed by a test", was)
		}
	}
	return nil
}

// remove deletes objects, whatever finalizers keep them. A namespace is deleted with what
// is in it, and finalized when it is empty: no controller that would do it may be running.
// old are the namespaces that stay; the server itself writes to some of them.
func (p pristine) remove(ctx context.Context, c *client.Client, old map[string]bool) error {
	inhabited := map[string]bool{}
	for _, t := range p {
		inhabited[t.key.Namespace] = true
	}
	emptied := map[collection]bool{}
	for uid, t := range p {
		var err error
		switch in := (collection{t.resource, t.key.Namespace}); {
		case t.going && t.isNamespace() && inhabited[t.key.Name]:
		case t.going:
			err = t.release(ctx, c)
		case emptied[in]:
		case t.collects && t.key.Namespace != "" && !old[t.key.Namespace]:
			emptied[in] = true
			err = client.ForResource[*metav1.PartialObjectMetadata](c, t.resource).DeleteCollection(ctx, client.Selection{Namespace: t.key.Namespace}, atOnce...)
		default:
			err = client.ForResource[*metav1.PartialObjectMetadata](c, t.resource).Delete(ctx, t.key, append([]client.DeleteOption{client.IfUID(uid)}, atOnce...)...)
		}
		// An object that is gone went with another; one that has changed is read again.
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting %s: %w", t, err)
		}
	}
	return nil
}

// namespaces returns the names of the Namespaces among the objects.
func (p pristine) namespaces() map[string]bool {
	names := map[string]bool{}
	for _, t := range p {
		if t.isNamespace() {
			names[t.key.Name] = true
		}
	}
	return names
}

// collection is what one request deletes.
type collection struct {
	resource  object.Resource
	namespace string
}

// atOnce are the options of a deletion that does not wait for a kubelet.
var atOnce = []client.DeleteOption{client.GracePeriod(0), client.Propagation(metav1.DeletePropagationBackground)}

func (t thing) isNamespace() bool { return t.resource.Group == "" && t.resource.Plural == "namespaces" }

// release removes the finalizers of an object.
func (t thing) release(ctx context.Context, c *client.Client) error {
	if t.isNamespace() {
		body, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": t.key.Name}})
		if err != nil {
			return err
		}
		_, err = c.Request(http.MethodPut).Resource(t.resource).Key(t.key).Subresource("finalize").Body("application/json", body).Do(ctx)
		return err
	}
	patch, err := client.MergePatch(map[string]any{"metadata": map[string]any{"finalizers": nil}})
	if err != nil {
		return err
	}
	_, err = client.ForResource[*metav1.PartialObjectMetadata](c, t.resource).Patch(ctx, t.key, patch)
	return err
}
