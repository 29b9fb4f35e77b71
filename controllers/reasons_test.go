// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/bootstrapsigner"
	"github.com/setpoint-io/setpoint/controllers/clusterroleaggregation"
	"github.com/setpoint-io/setpoint/controllers/csrapproving"
	"github.com/setpoint-io/setpoint/controllers/csrcleaner"
	"github.com/setpoint-io/setpoint/controllers/endpoints"
	"github.com/setpoint-io/setpoint/controllers/endpointslice"
	"github.com/setpoint-io/setpoint/controllers/endpointslicemirroring"
	"github.com/setpoint-io/setpoint/controllers/garbagecollector"
	"github.com/setpoint-io/setpoint/controllers/legacytokencleaner"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
	"github.com/setpoint-io/setpoint/controllers/podgc"
	"github.com/setpoint-io/setpoint/controllers/tokencleaner"
	"github.com/setpoint-io/setpoint/internal/certrequesttest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// Controllers state why they do nothing about an object, and the record finds it by the object.
func TestControllersStateWhyTheyDoNothing(t *testing.T) {
	all := func(selector string) map[string]string { return map[string]string{"app": selector} }
	past := metav1.NewTime(time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)) // the bubble begins in 2000
	trueness := true
	signer := func(m *manager.Manager) (manager.Runnable, error) { return bootstrapsigner.New(m) }
	for name, c := range map[string]struct {
		controller managertest.Make
		objects    []object.Object
		about      string // of kind/name, in the namespace ns if the kind has one
		wait       time.Duration
		want       string
	}{
		"no selector": {
			controller: managertest.Making(endpointslice.New, endpointslice.Defaults()),
			objects:    []object.Object{&corev1.Service{ObjectMeta: named("web")}},
			about:      "Service/web", want: "ServiceHasNoSelector: the Service has no selector, so other programs write its endpoints (until it has a selector)",
		},
		"an external name": {
			controller: managertest.Making(endpoints.New, endpoints.Defaults()),
			objects:    []object.Object{&corev1.Service{ObjectMeta: named("web"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName}}},
			about:      "Service/web", want: "ServiceHasNoSelector: the Service has the type ExternalName and no endpoints (until it has another type and a selector)",
		},
		"no Pods": {
			controller: managertest.Making(endpointslice.New, endpointslice.Defaults()),
			objects:    []object.Object{&corev1.Service{ObjectMeta: named("web"), Spec: corev1.ServiceSpec{Selector: all("web")}}},
			about:      "Service/web", want: "NoPodsSelected: no Pod of the namespace matches the selector app=web (until a Pod has these labels)",
		},
		"Pods that are not ready": {
			controller: managertest.Making(endpoints.New, endpoints.Defaults()),
			objects: []object.Object{
				&corev1.Service{ObjectMeta: named("web"), Spec: corev1.ServiceSpec{Selector: all("web")}},
				&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Labels: all("web")}},
			},
			about: "Service/web", want: "PodsNotReady: 0 of 1 Pod that the Service selects is ready and has an address (until the other Pods are ready or gone)",
		},
		"Endpoints without a Service": {
			controller: managertest.Making(endpointslicemirroring.New, endpointslicemirroring.Defaults()),
			objects:    []object.Object{&corev1.Endpoints{ObjectMeta: named("web")}},
			about:      "Endpoints/web", want: "NoService: the Endpoints have no Service of their name (until the Service is created)",
		},
		"Endpoints that are excluded": {
			controller: managertest.Making(endpointslicemirroring.New, endpointslicemirroring.Defaults()),
			objects: []object.Object{&corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "web", Labels: map[string]string{discoveryv1.LabelSkipMirror: "true"},
			}}},
			about: "Endpoints/web", want: "MirroringExcluded: the label endpointslice.kubernetes.io/skip-mirror excludes the Endpoints from mirroring (until the label is removed)",
		},
		"a sum without parts": {
			controller: managertest.Making(clusterroleaggregation.New, clusterroleaggregation.Defaults()),
			objects: []object.Object{&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "sum"}, AggregationRule: &rbacv1.AggregationRule{
				ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: all("part")}},
			}}},
			about: "ClusterRole/sum", want: "NothingToAggregate: ClusterRole.rbac.authorization.k8s.io sum: no ClusterRole with rules matches the aggregationRule (until one does)",
		},
		"a request to another signer": {
			controller: managertest.Making(csrapproving.New, csrapproving.Defaults()),
			objects:    []object.Object{kubeletsRequest(t, "example.com/mine")},
			about:      "CertificateSigningRequest/r",
			want: "ApprovedByOthers: this controller approves client certificates of kubelets alone, and the request to the signer example.com/mine is not for one" +
				" (until another controller or a user approves or denies the request)",
		},
		"a request that is young": {
			controller: managertest.Making(csrcleaner.New, csrcleaner.Defaults()),
			objects:    []object.Object{kubeletsRequest(t, "example.com/mine")},
			about:      "CertificateSigningRequest/r",
			want:       "RequestNotExpired: the request is kept until 2000-01-02T00:00:00Z (until that time, or a change of its conditions)",
		},
		"a token that is valid": {
			controller: managertest.Making(tokencleaner.New, tokencleaner.Defaults()),
			objects: []object.Object{&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-abcdef"}, Type: "bootstrap.kubernetes.io/token",
				Data: map[string][]byte{"expiration": []byte("2000-02-01T00:00:00Z")},
			}},
			about: "Secret/kube-system/bootstrap-token-abcdef",
			want:  "TokenNotExpired: the token expires at 2000-02-01T00:00:00Z (until that time, or a change of the expiration)",
		},
		"nothing to sign": {
			controller: signer,
			objects:    []object.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: "cluster-info"}}},
			about:      "ConfigMap/kube-public/cluster-info", want: "NothingToSign: the ConfigMap has no kubeconfig, so there is nothing to sign (until it has one)",
		},
		"no token that signs": {
			controller: signer,
			objects: []object.Object{&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: "cluster-info"}, Data: map[string]string{"kubeconfig": "x"},
			}},
			about: "ConfigMap/kube-public/cluster-info", want: "NoSigningToken: no bootstrap token may sign (until a token that may sign is created, or changed so that it may)",
		},
		"an unused token that a Pod mounts": {
			controller: managertest.Making(legacytokencleaner.New, legacytokencleaner.Options{CleanUpPeriod: 24 * time.Hour}),
			objects: []object.Object{
				&corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kube-apiserver-legacy-service-account-token-tracking"},
					Data:       map[string]string{"since": "1999-01-01"},
				},
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
					Namespace: "ns", Name: "token", CreationTimestamp: past, UID: "u", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"},
				}, Type: corev1.SecretTypeServiceAccountToken},
				&corev1.ServiceAccount{ObjectMeta: named("default"), Secrets: []corev1.ObjectReference{{Name: "token"}}},
				&corev1.Pod{ObjectMeta: named("a"), Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
					Secret: &corev1.SecretVolumeSource{SecretName: "token"},
				}}}}},
			},
			about: "Secret/token", wait: 25 * time.Hour, want: "TokenIsMounted: Secret ns/token: the token is unused, and a Pod mounts it (until no Pod mounts it)",
		},
		"a Pod on a node that is missing": {
			controller: managertest.Making(podgc.New, podgc.Defaults()),
			objects:    []object.Object{&corev1.Pod{ObjectMeta: named("a"), Spec: corev1.PodSpec{NodeName: "lost"}}},
			about:      "Node/lost", wait: 25 * time.Second,
			want: "NodeMissingTooShort: Node lost: the node is missing, and its Pods stay until 2000-01-01T00:00:40Z" +
				" (until that time, if the server does not know the node either)",
		},
		"the only node is silent": {
			controller: managertest.Making(nodelifecycle.New, nodelifecycle.Defaults()),
			objects: []object.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
			}}}},
			about: "Node/n", wait: 2 * time.Minute,
			want: "NoNodeIsReady: no node of the cluster is ready, so no node gets a NoExecute taint and all Pods stay (until more nodes are ready)",
		},
		"an owner that waits for its dependents": {
			controller: managertest.Making(garbagecollector.New, garbagecollector.Defaults()),
			objects: []object.Object{
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
					Namespace: "ns", Name: "owner", UID: "o", DeletionTimestamp: &past, Finalizers: []string{metav1.FinalizerDeleteDependents},
				}},
				&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
					Namespace: "ns", Name: "a", UID: "p", DeletionTimestamp: &past, Finalizers: []string{"example.com/keep"},
					OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "o", BlockOwnerDeletion: &trueness}},
				}},
			},
			about: "ConfigMap/owner", wait: time.Minute,
			want: "DependentsBlockDeletion: ConfigMap ns/owner: it is deleted in the foreground, and 1 dependent with blockOwnerDeletion exists," +
				" among them Pod ns/a (until they are gone)",
		},
		"an owner of a kind that is not served": {
			controller: managertest.Making(garbagecollector.New, garbagecollector.Defaults()),
			objects: []object.Object{&corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "a", UID: "p", OwnerReferences: []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Ghost", Name: "g", UID: "o"}},
			}}},
			about: "Pod/a", wait: time.Minute,
			want: "OwnerNotKnown: Pod ns/a: it is kept because its owner Ghost g of example.com/v1 cannot be looked up" +
				" (until the kind is served, or the reference is removed)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api, kinds := serveAll()
				for _, o := range c.objects {
					if err := kinds[kindOf(o)].Put(o); err != nil {
						t.Fatal(err)
					}
				}
				process := managertest.Run(t, api.Config(), c.controller)
				time.Sleep(c.wait + 3*time.Second)
				synctest.Wait()
				var got []string
				for _, run := range process.Runs().Present(runs.Query{Object: aboutOf(c.about, kinds)}) {
					for _, reason := range run.Reasons {
						got = append(got, reason.Code+": "+reason.String())
					}
				}
				if !slices.Equal(got, []string{c.want}) {
					t.Errorf("the reasons about %s are\n%q, want\n%q", c.about, got, c.want)
				}
			})
		})
	}
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ns", Name: name} }

func kubeletsRequest(t *testing.T, signer string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	request, _ := certrequesttest.Object(t, "r", signer, certrequesttest.Node("n"), certrequesttest.ClientUsages...)
	request.Spec.Username = "somebody"
	request.CreationTimestamp = metav1.NewTime(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
	return request
}

// serveAll returns a server of the kinds that the scenes need.
func serveAll() (*fakeapi.Server, map[string]*fakeapi.Resource) {
	api, kinds := fakeapi.New(), map[string]*fakeapi.Resource{}
	for _, r := range []object.Resource{
		{Version: "v1", Plural: "services", Kind: "Service", Namespaced: true},
		{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true},
		{Version: "v1", Plural: "endpoints", Kind: "Endpoints", Namespaced: true},
		{Version: "v1", Plural: "secrets", Kind: "Secret", Namespaced: true},
		{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true},
		{Version: "v1", Plural: "serviceaccounts", Kind: "ServiceAccount", Namespaced: true},
		{Version: "v1", Plural: "nodes", Kind: "Node"},
		{Version: "v1", Plural: "namespaces", Kind: "Namespace"},
		{Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Kind: "Lease", Namespaced: true},
		{Group: "discovery.k8s.io", Version: "v1", Plural: "endpointslices", Kind: "EndpointSlice", Namespaced: true},
		{Group: "events.k8s.io", Version: "v1", Plural: "events", Kind: "Event", Namespaced: true},
		{Group: "rbac.authorization.k8s.io", Version: "v1", Plural: "clusterroles", Kind: "ClusterRole"},
		{Group: "certificates.k8s.io", Version: "v1", Plural: "certificatesigningrequests", Kind: "CertificateSigningRequest"},
		{Group: "authorization.k8s.io", Version: "v1", Plural: "subjectaccessreviews", Kind: "SubjectAccessReview"},
	} {
		kinds[r.Kind] = api.Serve(r, fakeapi.WithStatus())
	}
	return api, kinds
}

// kindOf returns the kind of an object by its Go type.
func kindOf(o object.Object) string {
	return reflect.TypeOf(o).Elem().Name()
}

// aboutOf returns the object that "Kind/name" or "Kind/namespace/name" stands for.
func aboutOf(text string, kinds map[string]*fakeapi.Resource) runs.Object {
	parts := strings.Split(text, "/")
	r := kinds[parts[0]].Resource
	about := runs.Object{Group: r.Group, Kind: r.Kind, Name: parts[len(parts)-1]}
	switch {
	case len(parts) == 3:
		about.Namespace = parts[1]
	case r.Namespaced:
		about.Namespace = "ns"
	}
	return about
}
