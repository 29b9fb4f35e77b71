// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Options say how a watch runs in a cluster.
type Options struct {
	// Image has the program setpoint-watch.
	Image string
	// Namespace is where it runs. It must be there.
	Namespace string
	// Name is what everything is called. Default: setpoint-watch.
	Name string
	// Replicas are how many processes there are, of which one works. Default: 1.
	Replicas int
	// Storage is the size of the volume for the cursor and for files. Default: 1Gi.
	Storage string
	// StorageClass is that of the volume. Default: the cluster's.
	StorageClass string
	// ClusterScoped are watched kinds of the configuration that are not in namespaces, for
	// those that Kubernetes does not have itself. They matter where the configuration names
	// namespaces: the right to read such a kind is one for the cluster.
	ClusterScoped []string
}

const (
	defaultName    = "setpoint-watch"
	defaultStorage = "1Gi"
	defaultPort    = 10270
	configDir      = "/config" // a folder that nobody mounts a secret below
	configFile     = "config.yaml"
	portName       = "https"
)

// Manifests returns the files of a kustomize base that runs the configuration in a cluster,
// by name. All but kustomization.yaml hold objects, and can be applied without kustomize too.
// The same configuration and options give the same bytes.
//
// The rights are those to get, list and watch what the configuration watches, and nothing
// else but what its sinks and several replicas need. Secrets are not among the files: a
// secret in the file /DIR/NAME/KEY is mounted from the Secret NAME, one in the environment
// variable KEY comes from the key KEY of the Secret that is called as everything is.
func Manifests(c *Config, o Options) (map[string][]byte, error) {
	p, err := newPlan(c, o)
	if err != nil {
		return nil, fmt.Errorf("making the manifests of %s: %w", c.file, err)
	}
	files := map[string][]byte{}
	var names []string
	for _, file := range []struct {
		name, about string
		objects     []runtime.Object
	}{
		{"account.yaml", "Who the watch is.", p.account()},
		{"configuration.yaml", "The configuration, as it was read.", p.configuration()},
		{"rbac.yaml", "What it may do: read what the configuration watches, and no more than its sinks and replicas need.", p.rights()},
		{"storage.yaml", "One volume for all replicas: the storage class must let several nodes write, and lock files between them.", p.storage()},
		{"workload.yaml", p.about(), p.workload()},
		{"service.yaml", "Where metrics are read.", p.service()},
	} {
		if len(file.objects) == 0 {
			continue
		}
		text, err := documents(file.about, file.objects)
		if err != nil {
			return nil, fmt.Errorf("making %s: %w", file.name, err)
		}
		files[file.name] = text
		names = append(names, file.name)
	}
	text, err := p.kustomization(names)
	if err != nil {
		return nil, fmt.Errorf("making kustomization.yaml: %w", err)
	}
	files["kustomization.yaml"] = text
	return files, nil
}

// plan is what the manifests have in common.
type plan struct {
	config *Config
	Options
	size     resource.Quantity // of the volume
	port     int32
	args     []string
	lease    string // namespace/name; empty for one replica
	state    []string
	secrets  []secretDir
	env      []string
	metadata metav1.ObjectMeta
	labels   map[string]string
}

func newPlan(c *Config, o Options) (*plan, error) {
	p := &plan{config: c, Options: o, port: defaultPort}
	if p.Name == "" {
		p.Name = defaultName
	}
	p.Replicas = max(p.Replicas, 1)
	if p.Storage == "" {
		p.Storage = defaultStorage
	}
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.Image == "" || strings.ContainsAny(o.Image, " \n\t") {
		wrong("image %q: name the image that has setpoint-watch", o.Image)
	}
	if len(validation.IsDNS1123Label(o.Namespace)) > 0 {
		wrong("namespace %q: name the namespace that the watch runs in", o.Namespace)
	}
	// Pods of a StatefulSet have a hash of 10 characters in a label with its name.
	if len(validation.IsDNS1035Label(p.Name)) > 0 || len(p.Name) > 52 {
		wrong("name %q: want lower case letters, digits and dashes, a letter first, at most 52", p.Name)
	}
	if o.Replicas < 0 {
		wrong("%d replicas: want 1 or more", o.Replicas)
	}
	var err error
	if p.size, err = resource.ParseQuantity(p.Storage); err != nil || p.size.Sign() <= 0 {
		wrong("storage %q: want a size such as 1Gi", p.Storage)
	}
	p.args = []string{"-f", configDir + "/" + configFile}
	if err := p.listen(); err != nil {
		errs = append(errs, err)
	}
	if p.lease = c.Lease; p.lease == "" && p.Replicas > 1 {
		p.lease = p.Namespace + "/" + p.Name
		p.args = append(p.args, "--leader-elect", "--leader-elect-resource-namespace="+p.Namespace, "--leader-elect-resource-name="+p.Name)
	}
	errs = append(errs, p.folders()...)
	p.labels = map[string]string{"app.kubernetes.io/name": defaultName, "app.kubernetes.io/instance": p.Name}
	p.metadata = metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, Labels: p.labels}
	return p, errors.Join(errs...)
}

// listen finds the port of probes and metrics.
func (p *plan) listen() error {
	if p.config.Listen == "" {
		p.args = append(p.args, "--secure-port="+strconv.Itoa(defaultPort))
		return nil
	}
	at, err := addressOf(p.config.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err) // Parse has checked it
	}
	if !at.Addr().IsUnspecified() {
		return fmt.Errorf("listen %q: probes come from outside of the Pod; leave the address out, as in \":%d\"", p.config.Listen, at.Port())
	}
	p.port = int32(at.Port())
	return nil
}

// documents encodes objects as YAML, one document each. What a server fills in is left out.
func documents(about string, objects []runtime.Object) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# %s\n# Made from the configuration by setpoint watch manifests; make it anew when that changes.\n", about)
	for i, object := range objects {
		tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, err
		}
		delete(tree, "status")
		prune(tree)
		if i > 0 {
			b.WriteString("---\n")
		}
		if err := encode(&b, tree); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

func encode(b *bytes.Buffer, value any) error {
	e := yaml.NewEncoder(b)
	e.SetIndent(2)
	if err := e.Encode(value); err != nil {
		return err
	}
	return e.Close()
}

// prune takes out creation times and empty structs that Go's encoding writes and nobody means.
func prune(tree map[string]any) {
	for key, value := range tree {
		switch value := value.(type) {
		case nil:
			delete(tree, key)
		case map[string]any:
			if prune(value); key == "status" && len(value) == 0 {
				delete(tree, key)
			}
			if key == "resources" && len(value) == 0 {
				delete(tree, key)
			}
		case []any:
			for _, item := range value {
				if item, ok := item.(map[string]any); ok {
					prune(item)
				}
			}
		}
	}
}

// kustomization lists the files.
func (p *plan) kustomization(names []string) ([]byte, error) {
	b := bytes.NewBufferString("# Made from the configuration by setpoint watch manifests, for kubectl apply -k.\n" +
		"# No namespace is set here, because that would move the roles in watched namespaces too.\n")
	err := encode(b, struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Resources  []string
	}{"kustomize.config.k8s.io/v1beta1", "Kustomization", names})
	return b.Bytes(), err
}
