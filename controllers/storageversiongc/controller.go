// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package storageversiongc

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	internalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/predicate"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "storageversion-garbage-collector-controller"

// The label of the Leases of API servers, in kube-system.
// Source: k8s.io/kubernetes/pkg/controlplane/apiserver, IdentityLeaseComponentLabelKey and
// KubeAPIServer.
const (
	identityLabel = "apiserver.kubernetes.io/identity"
	ofAPIServers  = "kube-apiserver"
)

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// Workers is how many StorageVersions are worked on at a time.
	Workers int
}

// Rights returns what the controller must be allowed to do. The caller owns the result.
func Rights() []rbacv1.PolicyRule {
	const group = internalv1alpha1.GroupName
	return []rbacv1.PolicyRule{
		{APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{group}, Resources: []string{"storageversions"}, Verbs: []string{"get", "list", "watch", "delete"}},
		{APIGroups: []string{group}, Resources: []string{"storageversions/status"}, Verbs: []string{"update"}},
	}
}

type reconciler struct {
	versions cache.SharedInformer[*internalv1alpha1.StorageVersion]
	leases   cache.SharedInformer[*coordinationv1.Lease]
	byServer cache.Index[*internalv1alpha1.StorageVersion]
	log      *slog.Logger
	now      func() time.Time
}

// New returns the controller, built on h, which runs it.
func New(h controller.Host, o Options) (*controller.Controller, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	r := &reconciler{
		versions: cache.Informer[*internalv1alpha1.StorageVersion](h),
		leases:   cache.Informer[*coordinationv1.Lease](h, cache.InNamespace(metav1.NamespaceSystem), cache.WithLabels(identityLabel+"="+ofAPIServers)),
		log:      h.Logger().With("controller", Name),
		now:      time.Now,
	}
	r.byServer = cache.NewIndex(r.versions, serversOf)
	return controller.New(Name, r.reconcile,
		controller.For(r.versions, predicate.Stays),
		controller.Watches(r.leases, r.notedBy, predicate.Gone),
		controller.Workers(o.Workers),
	), nil
}

// serversOf indexes StorageVersions by the API servers in them.
func serversOf(item cache.Item[*internalv1alpha1.StorageVersion]) (servers []string, err error) {
	version, err := item.Object()
	if err != nil {
		return nil, err
	}
	for _, v := range version.Status.StorageVersions {
		servers = append(servers, v.APIServerID)
	}
	return servers, nil
}

// notedBy adds the StorageVersions that have the API server of a Lease.
func (r *reconciler) notedBy(lease cache.Item[*coordinationv1.Lease], add func(object.Key)) {
	for key := range r.byServer.Find(lease.Key().Name) {
		add(key)
	}
}

// reconcile removes the API servers that are gone from one StorageVersion.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	version, err := r.versions.Get(req.Key)
	if apierrors.IsNotFound(err) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, err
	}
	gone, err := r.gone(ctx, version)
	if err != nil || len(gone) == 0 {
		return controller.Result{}, err
	}
	status := without(version, gone, metav1.NewTime(r.now()))
	if len(status.StorageVersions) == 0 {
		err = r.versions.Delete(ctx, req.Key, client.IfUID(version.UID), client.IfVersion(r.versions.Snapshot().Get(req.Key).Meta().Version))
	} else {
		next := *version
		next.Status = status
		_, err = r.versions.UpdateStatus(ctx, &next)
	}
	if client.AbsentAt(err, req.Key) {
		return controller.Result{}, nil
	}
	if err != nil {
		return controller.Result{}, fmt.Errorf("removing %d API servers that are gone from storageversion %s: %w", len(gone), req.Key.Name, err)
	}
	r.log.Info("removed API servers that are gone from a storage version", "storageversion", req.Key.Name, "servers", len(gone))
	return controller.Result{}, nil
}

// gone returns the API servers of a StorageVersion without a Lease. Those that the cache does
// not have are read from the server.
func (r *reconciler) gone(ctx context.Context, version *internalv1alpha1.StorageVersion) (map[string]bool, error) {
	gone := map[string]bool{}
	for _, v := range version.Status.StorageVersions {
		key := object.Key{Namespace: metav1.NamespaceSystem, Name: v.APIServerID}
		if gone[v.APIServerID] || r.leases.Snapshot().Get(key).Exists() {
			continue
		}
		lease, err := r.leases.Server().Get(ctx, key)
		if err != nil && !client.AbsentAt(err, key) {
			return nil, fmt.Errorf("reading lease %s of an API server: %w", key, err)
		}
		if err != nil || lease.Labels[identityLabel] != ofAPIServers {
			gone[v.APIServerID] = true
		}
	}
	return gone, nil
}
