// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package rootcapublisher

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controller/predicate"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "root-ca-certificate-publisher-controller"

// What the kubelet and people look for.
// Source: k8s.io/kubernetes/pkg/controller/certificates/rootcacertpublisher.
const (
	configMap       = "kube-root-ca.crt"
	certificatesKey = "ca.crt"
	annotation      = "kubernetes.io/description"
	description     = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. " +
		"No other usage is guaranteed across distributions of Kubernetes clusters."
)

// Options changes how the controller works. [Defaults] returns upstream's choices.
type Options struct {
	// RootCA are the certificates that are published, in PEM. They are needed.
	RootCA []byte
	// Workers is how many namespaces are worked on at a time.
	Workers int
}

// Rights returns what the controller must be allowed to do.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{configMap}, Verbs: []string{"get", "list", "watch", "update"}},
		// The rule cannot have a name: the server authorizes a create before it knows the
		// name.
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}},
	}
}

// New returns the controller, built on h, which runs it. It is a prometheus.Collector as well.
func New(h controller.Host, o Options) (controller.Runnable, error) {
	if err := controllers.CheckWorkers(o.Workers); err != nil {
		return nil, fmt.Errorf("making %s: %w", Name, err)
	}
	if len(o.RootCA) == 0 {
		return nil, fmt.Errorf("making %s: %w", Name, errNoCertificates)
	}
	metrics := &controllers.Metrics{}
	r := &reconciler{
		namespaces: cache.Informer[*corev1.Namespace](h),
		configMaps: cache.Informer[*corev1.ConfigMap](h,
			cache.WithFields(fields.OneTermEqualSelector(metav1.ObjectNameField, configMap).String())).
			With(client.MetadataAnswer()),
		data:  map[string]string{certificatesKey: string(o.RootCA)},
		syncs: metrics.Syncs("root_ca_cert_publisher", "the certificates of the API server"),
	}
	return metrics.Of(controller.New(Name, r.reconcile,
		controller.For(r.namespaces, predicate.Stays),
		controller.Watches(r.configMaps, namespaceOf, notAdded),
		controller.Workers(o.Workers),
	)), nil
}

var errNoCertificates = errors.New("there are no certificates to publish; give those that the API server's is signed by")

// namespaceOf adds the namespace of a ConfigMap.
func namespaceOf(configMap cache.Item[*corev1.ConfigMap], add func(object.Key)) {
	add(object.Key{Name: configMap.Key().Namespace})
}

// notAdded leaves out ConfigMaps that appear: those that exist at the start are reconciled
// with their namespaces, and this controller has created the others.
func notAdded(e cache.Event[*corev1.ConfigMap]) bool { return e.Kind != cache.Added }

type reconciler struct {
	namespaces cache.SharedInformer[*corev1.Namespace]
	configMaps cache.SharedInformer[*corev1.ConfigMap]
	data       map[string]string
	syncs      *controllers.Syncs
}

// reconcile publishes the certificates in one namespace, and counts the run.
func (r *reconciler) reconcile(ctx context.Context, req controller.Request) (controller.Result, error) {
	began := time.Now()
	err := r.publish(ctx, req.Key)
	r.syncs.Add(time.Since(began), err)
	return controller.Result{}, err
}

// publish makes the ConfigMap of an active namespace, or makes it right.
func (r *reconciler) publish(ctx context.Context, of object.Key) error {
	namespace, err := r.namespaces.Get(of)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if namespace.DeletionTimestamp != nil || namespace.Status.Phase != corev1.NamespaceActive {
		return nil
	}
	key := object.Key{Namespace: namespace.Name, Name: configMap}
	present, err := r.configMaps.Get(key)
	if apierrors.IsNotFound(err) {
		return r.create(ctx, key)
	}
	if err != nil {
		return err
	}
	if r.right(present) {
		return nil
	}
	return r.mend(ctx, present)
}

// right reports whether there is nothing to change about a ConfigMap.
func (r *reconciler) right(c *corev1.ConfigMap) bool {
	return maps.Equal(c.Data, r.data) && c.Annotations[annotation] != ""
}

func (r *reconciler) create(ctx context.Context, key object.Key) error {
	_, err := r.configMaps.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Annotations: map[string]string{annotation: description}},
		Data:       r.data,
	})
	if err == nil || client.NamespaceGone(err) { // no Pod waits for it there
		return nil
	}
	return fmt.Errorf("creating configmap %s: %w", key, err)
}

// mend leaves alone what is not this controller's: labels and other annotations.
func (r *reconciler) mend(ctx context.Context, present *corev1.ConfigMap) error {
	mended := present.DeepCopy()
	mended.Data = r.data
	if mended.Annotations == nil {
		mended.Annotations = map[string]string{}
	}
	mended.Annotations[annotation] = description
	_, err := r.configMaps.Update(ctx, mended)
	// It went in the meantime: that comes as an event of its own.
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("updating configmap %s: %w", object.KeyOf(present), err)
}
