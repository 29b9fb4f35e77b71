// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Options say how a watch runs in a cluster.
type Options struct {
	// Image has the program setpoint-watch.
	Image string
	// Namespace is where it runs. It must exist.
	Namespace string
	// Name is the name of every object. Default: setpoint-watch.
	Name string
	// Replicas is the number of processes, of which one leads. Default: 1.
	Replicas int
	// Storage is the size of the volume for the cursor and for files. Default: 1Gi.
	Storage string
	// StorageClass is that of the volume. Default: the cluster's.
	StorageClass string
	// ClusterScoped are the watched kinds of CustomResourceDefinitions whose objects are not in
	// namespaces. They matter if the configuration names namespaces: reading such a kind needs
	// a ClusterRole.
	ClusterScoped []string
}

const (
	defaultName    = "setpoint-watch"
	defaultStorage = "1Gi"
	defaultPort    = 10270
	configDir      = "/config" // no Secret may be mounted below it
	configFile     = "config.yaml"
)

// The files of the base are templates, whose data is a plan.
//
//go:embed manifests
var manifestFiles embed.FS

// Manifests returns the files of a kustomize base that runs the configuration in a cluster,
// by name. All but kustomization.yaml hold objects, and can be applied without kustomize too.
// The same configuration and options give the same bytes.
//
// The rights are those to get, list and watch what the configuration watches, and those that its
// sinks, its metrics and several replicas need. Secrets are not among the files: a secret in the
// file /DIR/NAME/KEY is mounted from the Secret NAME, and one in the environment variable KEY comes
// from the key KEY of the Secret with the name of all objects.
func Manifests(c *Config, o Options) (map[string][]byte, error) {
	p, err := newPlan(c, o)
	if err != nil {
		return nil, fmt.Errorf("making the manifests of %s: %w", c.file, err)
	}
	var all *template.Template
	part := func(name string, p *plan) (string, error) {
		var b strings.Builder
		err := all.ExecuteTemplate(&b, name, p)
		return b.String(), err
	}
	all, err = template.New("").Option("missingkey=error").Funcs(template.FuncMap{
		"part": part, "yaml": block, "flow": flow, "indent": indent, "join": strings.Join,
	}).ParseFS(manifestFiles, "manifests/*")
	if err != nil {
		return nil, fmt.Errorf("reading the templates of manifests: %w", err)
	}
	files := map[string][]byte{}
	for _, file := range all.Templates() {
		name := file.Name()
		if !strings.HasSuffix(name, ".yaml") || name == "storage.yaml" && !p.Shared() {
			continue
		}
		text, err := part(name, p)
		if err != nil {
			return nil, fmt.Errorf("making %s: %w", name, err)
		}
		files[name] = []byte(text)
	}
	return files, nil
}

// block returns a text as it stands behind a key in YAML.
func block(text string) (string, error) {
	out, err := yaml.Marshal(text)
	return strings.TrimSpace(string(out)), err
}

// flow returns a text, or a list of texts, as it stands within brackets in YAML.
func flow(value any) (string, error) {
	text, isText := value.(string)
	if isText {
		value = []string{text}
	}
	var list yaml.Node
	if err := list.Encode(value); err != nil {
		return "", err
	}
	list.Style = yaml.FlowStyle
	out, err := yaml.Marshal(&list)
	line := strings.TrimSpace(string(out))
	if isText {
		line = strings.TrimSuffix(strings.TrimPrefix(line, "["), "]")
	}
	return line, err
}

func indent(by int, text string) string {
	margin := strings.Repeat(" ", by)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = margin + line
		}
	}
	return strings.Join(lines, "\n")
}

// plan is the data of the templates: the options with their defaults, and what follows from the
// configuration.
type plan struct {
	Options

	config  *Config
	Port    uint16
	Args    []string
	Lease   string      // namespace/name; empty for one replica
	State   []string    // folders that are kept
	Secrets []secretDir // folders that Secrets are mounted at
	Env     []string    // variables with secrets
}

func newPlan(c *Config, o Options) (*plan, error) {
	p := &plan{config: c, Options: o, Port: defaultPort, Args: []string{"-f", configDir + "/" + configFile}}
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
	if size, err := resource.ParseQuantity(p.Storage); err != nil || size.Sign() <= 0 {
		wrong("storage %q: want a size such as 1Gi", p.Storage)
	}
	if err := p.listen(); err != nil {
		errs = append(errs, err)
	}
	if p.Lease = c.Lease; p.Lease == "" && p.Replicas > 1 {
		p.Lease = p.Namespace + "/" + p.Name
		p.Args = append(p.Args, "--leader-elect", "--leader-elect-resource-namespace="+p.Namespace, "--leader-elect-resource-name="+p.Name)
	}
	return p, errors.Join(append(errs, p.folders()...)...)
}

// listen finds the port of probes and metrics.
func (p *plan) listen() error {
	if p.config.Listen == "" {
		p.Args = append(p.Args, "--secure-port="+strconv.Itoa(defaultPort))
		return nil
	}
	at, err := addressOf(p.config.Listen)
	if err != nil {
		return fmt.Errorf("listen: %w", err) // Parse has checked it
	}
	if !at.Addr().IsUnspecified() {
		return fmt.Errorf("listen %q: probes come from outside of the Pod; leave the address out, as in \":%d\"", p.config.Listen, at.Port())
	}
	p.Port = at.Port()
	return nil
}

// Alone reports whether the watch is a StatefulSet: with something to keep and one replica.
func (p *plan) Alone() bool { return len(p.State) > 0 && p.Replicas == 1 }

// Shared reports whether all replicas have one volume: a new leader continues from the cursor of
// the last one.
func (p *plan) Shared() bool { return len(p.State) > 0 && p.Replicas > 1 }

// Needed returns the Secrets that must exist: those that are mounted, and the one of the
// environment variables.
func (p *plan) Needed() []secretDir {
	var all []secretDir
	add := func(name string, keys []string) {
		for i := range all {
			if all[i].Name == name {
				all[i].Keys = sorted(append(all[i].Keys, keys...))
				return
			}
		}
		all = append(all, secretDir{Name: name, Keys: sorted(keys)})
	}
	for _, s := range p.Secrets {
		add(s.Name, s.Keys)
	}
	if len(p.Env) > 0 {
		add(p.Name, p.Env)
	}
	return all
}

// Data is the content of the ConfigMap, as YAML.
func (p *plan) Data() (string, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	err := errors.Join(e.Encode(map[string]string{configFile: string(p.config.text)}), e.Close())
	return b.String(), err
}

// Hash is of the configuration.
func (p *plan) Hash() string {
	sum := sha256.Sum256(p.config.text)
	return hex.EncodeToString(sum[:8])
}
