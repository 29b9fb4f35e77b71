// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
)

func TestKindsWithoutTheirControllerAreNamedWithIt(t *testing.T) {
	of := func(chosen, run []*controllers.Descriptor) map[string]Kind {
		named := map[string]Kind{}
		for _, k := range WithoutController(chosen, run) {
			if other, twice := named[k.Resource.Kind]; twice {
				t.Errorf("%s and %s both say that they are the main controller of %s", k.Controller, other.Controller, k.Objects())
			}
			named[k.Resource.Kind] = k
		}
		return named
	}
	for _, k := range of(Known(), Known()) {
		t.Errorf("all controllers run, and %s are without one: %s", k.Objects(), k.Because)
	}
	none := of(nil, nil)
	if got := none["Deployment"]; got.Controller != "deployment-controller" || got.Because != LeftOut || got.Objects() != "Deployments" {
		t.Errorf("Deployments: %+v", got)
	}
	if got := none["VolumeAttributesClass"].Objects(); got != "VolumeAttributesClasses" {
		t.Errorf("the objects of a kind that ends in s are called %s", got)
	}
}

func TestAKindSaysWhyItsControllerIsNotStarted(t *testing.T) {
	chosen := Known()
	for _, gate := range named(chosen, "storage-version-migrator-controller").Gates {
		gate.Set(false)
	}
	for _, flag := range named(chosen, "resourcequota-controller").Flags {
		if workers, is := flag.Into.(*int); is {
			*workers = 0
		}
	}
	because := map[string]string{}
	for _, k := range WithoutController(chosen, nil) {
		because[k.Controller] = k.Because
	}
	for name, want := range map[string]string{
		"storage-version-migrator-controller": "the feature gate StorageVersionMigrator is off",
		"resourcequota-controller":            "the flag --concurrent-resource-quota-syncs=0 stops it",
	} {
		if because[name] != want {
			t.Errorf("%s: %q, want %q", name, because[name], want)
		}
	}
}

// The names are those of the kube-controller-manager of this release: a controller that it
// gets, or that Setpoint gets, is in one of both lists and in one only.
func TestTheListOfAllControllersIsThatOfKubeControllerManager(t *testing.T) {
	if testing.Short() {
		t.Skip("runs kube-controller-manager, which -short leaves out")
	}
	binary, err := controlplanetest.Binary("kube-controller-manager")
	if err != nil {
		t.Fatal(err)
	}
	help, err := exec.CommandContext(t.Context(), binary, "--help").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`All controllers: (.*)`).FindSubmatch(help)
	if list == nil {
		t.Fatalf("its help does not list its controllers:\n%s", help)
	}
	upstream := strings.Split(strings.TrimSpace(string(list[1])), ", ")
	missing := map[string]bool{}
	for _, name := range absent() {
		missing[name] = true
	}
	for _, d := range Known() {
		if missing[d.Name] {
			t.Errorf("%s is built in, and in the list of those that are not", d.Name)
		}
	}
	for _, name := range upstream {
		if !missing[name] && !slices.ContainsFunc(Known(), func(d *controllers.Descriptor) bool { return d.Name == name }) {
			t.Errorf("kube-controller-manager has %s, which is neither built in nor in the list of those that are not", name)
		}
	}
	// Those of cloud providers are in the list of names, and in no kube-controller-manager
	// that is built without providers.
	cloud := []string{"cloud-node-lifecycle-controller", "node-route-controller", "service-lb-controller"}
	for name := range missing {
		if !slices.Contains(upstream, name) && !slices.Contains(cloud, name) {
			t.Errorf("%s is in the list of controllers that are not built in, and kube-controller-manager does not have it", name)
		}
	}
}

// needNone are the kinds whose objects no controller of kube-controller-manager has to act on,
// by the part of a cluster that acts on them.
var needNone = map[string][]string{
	"kube-apiserver": {
		"APIService", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "FlowSchema", "IPAddress", "LimitRange",
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "PriorityClass",
		"PriorityLevelConfiguration", "Role", "RoleBinding", "ServiceAccount", "ValidatingAdmissionPolicy",
		"ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration",
	},
	"nodes and what runs on them": {
		"CSIDriver", "CSINode", "CSIStorageCapacity", "ConfigMap", "DeviceClass", "EndpointSlice", "Endpoints", "NetworkPolicy", "Pod",
		"ResourceSlice", "RuntimeClass", "Secret", "StorageClass", "VolumeAttachment",
	},
	"controllers that a user installs": {"ClusterTrustBundle", "Ingress", "IngressClass", "PodCertificateRequest"},
	"the programs that write them":     {"ControllerRevision", "Event", "Lease", "PodTemplate"},
}

// A kind that a new version of Kubernetes serves is in one of both tables.
func TestEveryKindOfAServerIsKnownToHaveAControllerOrToNeedNone(t *testing.T) {
	served, err := shared.Get(t).Client.Discover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for _, k := range WithoutController(nil, nil) {
		known[k.Resource.Kind] = k.Controller
		if !slices.ContainsFunc(served, func(s client.Served) bool { return s.Resource == k.Resource }) {
			t.Errorf("the server does not serve %+v", k.Resource)
		}
	}
	for _, kinds := range needNone {
		for _, kind := range kinds {
			if controller, both := known[kind]; both {
				t.Errorf("%s needs no controller, and %s acts on it", kind, controller)
			}
			known[kind] = "none"
		}
	}
	for _, s := range served {
		stored := s.Can("create") && s.Can("delete")
		if stored && known[s.Kind] == "" {
			t.Errorf("%s: which controller acts on it? See ActsOn of controllers.Definition and needNone", s.Resource)
		}
	}
}
