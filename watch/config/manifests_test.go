// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

var inMonitoring = Options{Image: "registry.example.com/setpoint-watch:v1", Namespace: "monitoring"}

func manifests(t *testing.T, c *Config, o Options) map[string][]byte {
	t.Helper()
	files, err := Manifests(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// decode reads all objects of the files as a server that refuses what it does not know.
func decode(t *testing.T, files map[string][]byte) []runtime.Object {
	t.Helper()
	strict := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	var all []runtime.Object
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if name == "kustomization.yaml" {
			continue
		}
		documents := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(files[name])))
		for {
			document := make([]byte, 1<<20)
			n, err := documents.Read(document)
			if err == io.EOF { //nolint:errorlint // a reader's end
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			decoded, _, err := strict.Decode(document[:n], nil, nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all = append(all, decoded)
		}
	}
	return all
}

func configurations(t *testing.T) map[string]struct {
	config  *Config
	options Options
} {
	t.Helper()
	text, err := os.ReadFile("testdata/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	full, err := Parse(text, "cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	two := inMonitoring
	two.Name, two.Replicas, two.StorageClass, two.ClusterScoped = "chronos", 2, "shared", []string{"widgets.example.com"}
	return map[string]struct {
		config  *Config
		options Options
	}{
		"full":         {full, inMonitoring},
		"two-replicas": {full, two},
		"all":          {parse(t, "watch: {all: true}\nlisten: ':9000'\nsinks: [{name: t, terminal: }, {name: e, kubernetesEvents: }]"), inMonitoring},
		"all-in-one":   {parse(t, "watch: {all: true, namespaces: [a]}\nlease: ops/l"), inMonitoring},
		"least":        {parse(t, ""), inMonitoring},
	}
}

func TestManifestsAreAsTheyWere(t *testing.T) {
	for name, test := range configurations(t) {
		t.Run(name, func(t *testing.T) {
			files := manifests(t, test.config, test.options)
			for range 5 {
				if again := manifests(t, test.config, test.options); !maps.EqualFunc(files, again, bytes.Equal) {
					t.Fatal("the same configuration gives other manifests")
				}
			}
			var all bytes.Buffer
			for _, name := range slices.Sorted(maps.Keys(files)) {
				fmt.Fprintf(&all, "-- %s --\n%s", name, files[name])
			}
			golden(t, "testdata/manifests/"+name+".txt", all.Bytes())
		})
	}
}

func TestManifestsAreObjectsThatServersKnow(t *testing.T) {
	for name, test := range configurations(t) {
		t.Run(name, func(t *testing.T) {
			for _, o := range decode(t, manifests(t, test.config, test.options)) {
				accessor, err := meta.Accessor(o)
				if err != nil {
					t.Fatal(err)
				}
				if accessor.GetName() == "" {
					t.Errorf("%T has no name", o)
				}
				if config, ok := o.(*corev1.ConfigMap); ok {
					if again, err := Parse([]byte(config.Data[configFile]), configFile); err != nil || len(again.Sinks) != len(test.config.Sinks) {
						t.Errorf("the configuration is another one: %v", err)
					}
				}
			}
		})
	}
}

// can reports whether roles in a namespace, or in the cluster for "", allow something.
func can(objects []runtime.Object, namespace, verb, kind string) bool {
	plural, group := splitKind(kind)
	has := func(list []string, one string) bool { return slices.Contains(list, one) || slices.Contains(list, "*") }
	allows := func(rules []rbacv1.PolicyRule) bool {
		return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
			return has(r.Verbs, verb) && has(r.APIGroups, group) && has(r.Resources, plural)
		})
	}
	for _, o := range objects {
		switch o := o.(type) {
		case *rbacv1.ClusterRole:
			if allows(o.Rules) {
				return true
			}
		case *rbacv1.Role:
			if o.Namespace == namespace && allows(o.Rules) {
				return true
			}
		}
	}
	return false
}

func TestRightsAreThoseToReadWhatIsWatched(t *testing.T) {
	for name, test := range configurations(t) {
		objects := decode(t, manifests(t, test.config, test.options))
		for _, want := range map[string][]struct {
			namespace, verb, kind string
			may                   bool
		}{
			"full": {
				{"team-a", "watch", "pods", true}, {"team-b", "list", "deployments.apps", true}, {"", "watch", "nodes", true},
				{"team-c", "list", "pods", false}, {"", "list", "pods", false}, {"team-a", "list", "secrets", false},
				{"team-a", "watch", "widgets.example.com", true}, {"", "watch", "widgets.example.com", false},
				{"team-a", "create", "events.events.k8s.io", true}, {"default", "create", "events.events.k8s.io", true}, {"team-c", "create", "events.events.k8s.io", false},
				{"monitoring", "create", "leases.coordination.k8s.io", false}, {"team-a", "delete", "pods", false}, {"team-a", "create", "pods", false},
			},
			"two-replicas": {
				{"", "watch", "widgets.example.com", true}, {"monitoring", "update", "leases.coordination.k8s.io", true},
				{"monitoring", "create", "leases.coordination.k8s.io", true}, {"default", "update", "leases.coordination.k8s.io", false},
			},
			"all": {
				{"", "watch", "anything.example.com", true}, {"", "create", "events.events.k8s.io", true}, {"", "create", "pods", false}, {"", "update", "leases.coordination.k8s.io", false},
			},
			"all-in-one": {
				{"a", "watch", "anything.example.com", true}, {"", "watch", "nodes", true}, {"b", "watch", "pods", false}, {"", "watch", "pods", false},
				{"ops", "update", "leases.coordination.k8s.io", true},
			},
			"least": {{"", "watch", "pods", true}, {"", "watch", "configmaps", false}},
		}[name] {
			if may := can(objects, want.namespace, want.verb, want.kind); may != want.may {
				t.Errorf("%s: to %s %s in %q: %v, want %v", name, want.verb, want.kind, want.namespace, may, want.may)
			}
		}
		for _, o := range objects {
			binding, ok := o.(*rbacv1.RoleBinding)
			if ok && !slices.ContainsFunc(objects, func(o runtime.Object) bool {
				role, ok := o.(*rbacv1.Role)
				return ok && role.Name == binding.RoleRef.Name && role.Namespace == binding.Namespace
			}) {
				t.Errorf("%s: nothing is bound in %s", name, binding.Namespace)
			}
		}
	}
}

// A watch of one object lists and watches with a field selector of its name, which a right that
// names the object allows.
func TestRightsToReadAnObjectNameIt(t *testing.T) {
	c := parse(t, "watch: {kinds: [secrets/web, pods, nodes/one, secrets/api, deployments.apps/web], namespaces: [team-a]}\n")
	objects := decode(t, manifests(t, c, inMonitoring))
	rules := map[string][]string{} // by namespace
	read := func(namespace string, all []rbacv1.PolicyRule) {
		for _, rule := range all {
			if slices.Contains(rule.Verbs, "list") {
				rules[namespace] = append(rules[namespace], fmt.Sprint(rule.APIGroups, rule.Resources, rule.ResourceNames, rule.Verbs))
			}
		}
	}
	for _, o := range objects {
		switch role := o.(type) {
		case *rbacv1.Role:
			read(role.Namespace, role.Rules)
		case *rbacv1.ClusterRole:
			read("", role.Rules)
		}
	}
	want := map[string][]string{
		"":       {"[] [nodes] [one] [get list watch]"},
		"team-a": {"[] [pods] [] [get list watch]", "[apps] [deployments] [web] [get list watch]", "[] [secrets] [api web] [get list watch]"},
	}
	for namespace := range want {
		have := slices.DeleteFunc(rules[namespace], func(rule string) bool { return strings.Contains(rule, "customresourcedefinitions") })
		if !slices.Equal(have, want[namespace]) {
			t.Errorf("in %q the rights are %q, want %q", namespace, have, want[namespace])
		}
	}
}

func TestWhatIsKeptDecidesWhatRuns(t *testing.T) {
	const cursor = "cursor: /var/lib/watch/cursor\n"
	for _, test := range []struct {
		name, text string
		replicas   int
		want       string
	}{
		{"nothing, one replica", "", 1, "Deployment, Recreate"},
		{"nothing, two replicas", "", 2, "Deployment, RollingUpdate, 2 replicas"},
		{"nothing, one replica with a lease", "lease: a/b", 1, "Deployment, RollingUpdate"},
		{"a cursor, one replica", cursor, 1, "StatefulSet, a volume of its own"},
		{"a cursor, two replicas", cursor, 2, "Deployment, RollingUpdate, 2 replicas, a volume for all"},
		{"a file, one replica", "sinks: [{name: f, file: {path: /var/log/watch/x}}]", 1, "StatefulSet, a volume of its own"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := inMonitoring
			o.Replicas = test.replicas
			var got []string
			replicas := func(n *int32) {
				if *n != 1 {
					got = append(got, fmt.Sprintf("%d replicas", *n))
				}
			}
			for _, object := range slices.Backward(decode(t, manifests(t, parse(t, test.text), o))) {
				switch object := object.(type) {
				case *appsv1.Deployment:
					got = append(got, "Deployment", string(object.Spec.Strategy.Type))
					replicas(object.Spec.Replicas)
				case *appsv1.StatefulSet:
					got = append(got, "StatefulSet")
					replicas(object.Spec.Replicas)
					if len(object.Spec.VolumeClaimTemplates) == 1 {
						got = append(got, "a volume of its own")
					}
				case *corev1.PersistentVolumeClaim:
					if slices.Equal(object.Spec.AccessModes, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}) {
						got = append(got, "a volume for all")
					}
				}
			}
			if got := strings.Join(got, ", "); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestWhatCannotRunInAPodIsSaid(t *testing.T) {
	const sinks = "sinks:\n"
	for _, test := range []struct {
		name, text string
		change     func(*Options)
		want       string
	}{
		{"no image", "", func(o *Options) { o.Image = "" }, `image "": name the image that has setpoint-watch`},
		{"no namespace", "", func(o *Options) { o.Namespace = "" }, `namespace "": name the namespace that the watch runs in`},
		{"bad name", "", func(o *Options) { o.Name = "A" }, `name "A": want lower case letters, digits and dashes, a letter first, at most 52`},
		{"bad storage", "", func(o *Options) { o.Storage = "much" }, `storage "much": want a size such as 1Gi`},
		{"fewer than none", "", func(o *Options) { o.Replicas = -1 }, `-1 replicas: want 1 or more`},
		{"local address", "listen: 127.0.0.1:80", nil, `listen "127.0.0.1:80": probes come from outside of the Pod; leave the address out, as in ":80"`},
		{"relative cursor", "cursor: x.db", nil, `cursor: "x.db": in a container a file is named by its whole path, without . and .. in it`},
		{"cursor in the root", "cursor: /x.db", nil, `cursor: "/x.db": a volume at / would cover what is there; use a folder below it`},
		{"file in the system", sinks + "- {name: f, file: {path: /etc/x}}", nil, `sinks[0].file.path: "/etc/x": a volume at /etc would cover what is there; use a folder below it`},
		{"file among temporary ones", sinks + "- {name: f, file: {path: /tmp/x}}", nil, `sinks[0].file.path: "/tmp/x": /tmp is for temporary files; use another folder`},
		{"cursor among secrets", "cursor: /s/a/c\n" + sinks + "- {name: n, webhook: {urlFrom: {file: /s/a/url}}}", nil, `sinks[0].webhook.urlFrom: "/s/a/url": /s/a is for the cursor and files; use another folder`},
		{"secret in a secret", sinks + "- {name: n, webhook: {urlFrom: {file: /s/a/url}}}\n- {name: m, webhook: {urlFrom: {file: /s/a/b/url}}}", nil, `sinks[1].webhook.urlFrom: "/s/a/b/url": /s/a is for secrets; use another folder`},
		{"secret that cannot be called so", sinks + "- {name: n, webhook: {urlFrom: {file: /s/A_B/url}}}", nil, `sinks[0].webhook.urlFrom: "/s/A_B/url": the Secret is called as the folder and its key as the file, and A_B/url cannot be called so`},
		{"variable that cannot be", sinks + "- {name: n, webhook: {urlFrom: {env: a=b}}}", nil, `"a=b" cannot be the name of an environment variable of a container`},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := inMonitoring
			if test.change != nil {
				test.change(&o)
			}
			_, err := Manifests(parse(t, test.text), o)
			if want := "making the manifests of w.yaml: " + test.want; err == nil || err.Error() != want {
				t.Errorf("got %v\nwant %s", err, want)
			}
		})
	}
}

// What a template inserts is a text to YAML, whatever it looks like.
func TestNamesThatYAMLReadsOtherwiseAreQuoted(t *testing.T) {
	o := Options{Image: "example.com/a,b:v1", Namespace: "2024", Name: "null", Replicas: 2, StorageClass: "yes"}
	long := "/" + strings.Repeat("long/", 60) + "a, b: {c} #d/e"
	c := parse(t, "watch: {namespaces: ['1e3']}\ncursor: '"+long+"'\nsinks: [{name: n, webhook: {urlFrom: {env: Y}, signingKey: {file: '/s/[x], y/true/007'}}}]")
	objects := decode(t, manifests(t, c, o))
	for _, object := range objects {
		accessor, err := meta.Accessor(object)
		if err != nil {
			t.Fatal(err)
		}
		if name := accessor.GetName(); name != "null" && name != "2024:null" {
			t.Errorf("a %T is called %q", object, name)
		}
		switch object := object.(type) {
		case *corev1.PersistentVolumeClaim:
			if *object.Spec.StorageClassName != "yes" {
				t.Errorf("the storage class is %q", *object.Spec.StorageClassName)
			}
		case *appsv1.Deployment:
			pod := object.Spec.Template.Spec
			var mounts []string
			for _, m := range pod.Containers[0].VolumeMounts {
				mounts = append(mounts, m.MountPath)
			}
			want := []string{"/config", "/tmp", strings.TrimSuffix(long, "/e"), "/s/[x], y/true"}
			if !slices.Equal(mounts, want) || pod.Containers[0].Image != o.Image || pod.Containers[0].Env[0].Name != "Y" {
				t.Errorf("mounts %q, want %q; image %q, env %v", mounts, want, pod.Containers[0].Image, pod.Containers[0].Env)
			}
		}
	}
}
