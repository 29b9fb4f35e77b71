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
	of := func(run []*controllers.Descriptor) map[string]Kind {
		named := map[string]Kind{}
		for _, k := range WithoutController(run) {
			if other, twice := named[k.Resource.Kind]; twice {
				t.Errorf("%s and %s both say that they are the main controller of %s", k.Controller, other.Controller, k.Objects())
			}
			named[k.Resource.Kind] = k
		}
		return named
	}
	all := of(Known())
	for _, k := range all {
		if k.BuiltIn {
			t.Errorf("%s runs, and %s are without a controller", k.Controller, k.Objects())
		}
	}
	if _, is := all["Deployment"]; is {
		t.Error("Deployments are without a controller when all controllers run")
	}
	none := of(nil)
	if got := none["Deployment"]; got.Controller != "deployment-controller" || !got.BuiltIn || got.Objects() != "Deployments" {
		t.Errorf("Deployments: %+v", got)
	}
	if got := none["VolumeAttributesClass"].Objects(); got != "VolumeAttributesClasses" {
		t.Errorf("the objects of a kind that ends in s are called %s", got)
	}
	for kind := range all {
		if _, is := none[kind]; !is {
			t.Errorf("%s has a controller when none runs", kind)
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
	for _, a := range notBuiltIn() {
		missing[a.name()] = true
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
	for _, k := range WithoutController(nil) {
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
			t.Errorf("%s: which controller acts on it? See ActsOn of controllers.Definition, notBuiltIn and needNone", s.Resource)
		}
	}
}
