// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package trustbundle

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/object"
)

// Name is the controller's name.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/names.
const Name = "kube-apiserver-serving-clustertrustbundle-publisher-controller"

// Signer is whose certificates the bundle has.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/app/certificates.go.
const Signer = "kubernetes.io/kube-apiserver-serving"

// period is how often the controller looks.
const period = time.Minute

// codeNotServed is the code of the reason why the controller has nothing to do.
const codeNotServed = "KindNotServed"

// Options changes how the controller works.
type Options struct {
	// RootCA are the certificates, in PEM.
	RootCA []byte
}

// group is that of ClusterTrustBundles, and versions are those that fit, the best one first.
const group = "certificates.k8s.io"

func versions() []string { return []string{"v1", "v1beta1", "v1alpha1"} }

// kind is what ClusterTrustBundles of a version are.
func kind(version string) object.Resource {
	return object.Resource{Group: group, Version: version, Plural: "clustertrustbundles", Kind: "ClusterTrustBundle"}
}

// Rights returns what the controller must be allowed to do. The caller owns the result.
func Rights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{group}, Resources: []string{"clustertrustbundles"}, Verbs: []string{"list", "create", "update", "delete"}},
		{APIGroups: []string{group}, Resources: []string{"signers"}, ResourceNames: []string{Signer}, Verbs: []string{"attest"}},
	}
}

// bundle is the key of the only run.
type bundle struct{}

// String is the key in logs and on pages.
func (bundle) String() string { return "the bundle of " + Signer }

type reconciler struct {
	client  *client.Client
	content string
	name    string
	log     *slog.Logger
	syncs   *controllers.Syncs
}

// New returns the controller, built on h, which runs it. It is a prometheus.Collector as well.
func New(h controller.Host, o Options) (controller.Runnable, error) {
	if len(o.RootCA) == 0 {
		return nil, fmt.Errorf("making %s: it lacks the certificates of the API server", Name)
	}
	metrics := &controllers.Metrics{}
	r := &reconciler{
		client:  h.Client(),
		content: string(o.RootCA),
		name:    nameOf(o.RootCA),
		log:     h.Logger().With("controller", Name),
		syncs:   metrics.Syncs("clustertrustbundle_publisher", "ClusterTrustBundles"),
	}
	loop := controller.NewKeyed(Name, r.reconcile)
	loop.Periodically(period, bundle{})
	return metrics.Of(loop), nil
}

// nameOf returns the name of the bundle of some certificates.
// Source: k8s.io/kubernetes/pkg/controller/certificates/clustertrustbundlepublisher,
// constructBundleName.
func nameOf(certificates []byte) string {
	hash := sha256.Sum256(certificates)
	return fmt.Sprintf("%s:%x", strings.ReplaceAll(Signer, "/", ":"), hash[:12])
}

// reconcile publishes the certificates, in the first version of the kind that the server has.
func (r *reconciler) reconcile(ctx context.Context, _ controller.RequestOf[bundle]) (controller.Result, error) {
	began := time.Now()
	for _, version := range versions() {
		served, err := r.publish(ctx, kind(version))
		if !served {
			continue
		}
		r.syncs.Add(time.Since(began), err)
		return controller.Result{}, err
	}
	controller.Because(ctx, controller.Reason{
		Code: codeNotServed, Text: "the API server does not serve {kind}", Params: controller.With("kind", kind("").Plural+"."+group),
		Ends: "an API server of another version or with other flags",
	})
	return controller.Result{}, nil
}

// publish publishes the certificates in one version of the kind, and reports whether the server
// serves it.
func (r *reconciler) publish(ctx context.Context, kind object.Resource) (served bool, err error) {
	server := client.ForResource[*unstructured.Unstructured](r.client, kind)
	bundles, _, err := server.List(ctx, client.Selection{Fields: "spec.signerName=" + Signer})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return true, fmt.Errorf("listing the cluster trust bundles of %s: %w", Signer, err)
	}
	if err := r.write(ctx, server, kind, bundles); err != nil {
		return true, err
	}
	var failures []error
	for _, other := range bundles {
		if other.GetName() == r.name || field(other, "signerName") != Signer {
			continue
		}
		err := server.Delete(ctx, object.KeyOf(other), client.IfUID(other.GetUID()))
		switch {
		case err == nil:
			r.log.Info("deleted a cluster trust bundle of other certificates", "bundle", other.GetName())
		case !client.AbsentAt(err, object.KeyOf(other)):
			failures = append(failures, fmt.Errorf("deleting cluster trust bundle %s, which has other certificates: %w", other.GetName(), err))
		}
	}
	return true, errors.Join(failures...)
}

// write creates the bundle of the present certificates, or restores its content.
func (r *reconciler) write(ctx context.Context, server client.Typed[*unstructured.Unstructured], kind object.Resource, bundles []*unstructured.Unstructured) error {
	for _, is := range bundles {
		if is.GetName() != r.name {
			continue
		}
		if field(is, "trustBundle") == r.content {
			return nil
		}
		next := is.DeepCopy()
		if err := unstructured.SetNestedField(next.Object, r.content, "spec", "trustBundle"); err != nil {
			return fmt.Errorf("restoring cluster trust bundle %s: %w", r.name, err)
		}
		if _, err := server.Update(ctx, next); err != nil {
			return fmt.Errorf("restoring cluster trust bundle %s: %w", r.name, err)
		}
		r.log.Info("restored the content of a cluster trust bundle", "bundle", r.name)
		return nil
	}
	wanted := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kind.Group + "/" + kind.Version, "kind": kind.Kind,
		"metadata": map[string]any{"name": r.name},
		"spec":     map[string]any{"signerName": Signer, "trustBundle": r.content},
	}}
	if _, err := server.Create(ctx, wanted); err != nil {
		return fmt.Errorf("creating cluster trust bundle %s: %w", r.name, err)
	}
	r.log.Info("published the certificates of the API server", "bundle", r.name)
	return nil
}

// field returns a text of the spec of a bundle.
func field(bundle *unstructured.Unstructured, name string) string {
	text, _, _ := unstructured.NestedString(bundle.Object, "spec", name) // another type is not the wanted text
	return text
}
