// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"go/token"
	"go/types"
	"path"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// names are what a template can name. The first group is chosen by the user.
type names struct {
	Module    string // path of the module
	Group     string // "example.com"
	Version   string // "v1"
	Kind      string // "CronTab"
	Plural    string // "crontabs"
	ShortName string // "ct", or empty

	ClusterScoped bool // its objects belong to no namespace

	Scope     string // of the CustomResourceDefinition, "Namespaced"
	Singular  string // "crontab"
	Name      string // "crontab-controller"
	Namespace string // "crontab-system"
	File      string // begin of file names, "crontab"
	Variable  string // "cronTab"
	Variables string // "cronTabs"
	Receiver  string // "cronTabReconciler"

	Go      string // version of Go that the image is built with, "1.26.0"
	Require string // version of the library
	Source  string // folder of the library, as go.mod writes it; empty: none
}

// derive sets what follows from the user's choice, and returns an error if the choice is bad.
func (n *names) derive() error {
	if n.Plural == "" {
		plural, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Group: n.Group, Version: n.Version, Kind: n.Kind})
		n.Plural = plural.Resource
	}
	if err := n.check(); err != nil {
		return err
	}
	n.Scope = "Namespaced"
	if n.ClusterScoped {
		n.Scope = "Cluster"
	}
	n.Go = goVersion(runtime.Version())
	n.Singular = strings.ToLower(n.Kind)
	n.Name = n.Singular + "-controller"
	n.Namespace = n.Singular + "-system"
	n.File = n.Singular
	n.Variable = lowerCamel(n.Kind)
	n.Receiver = n.Variable + "Reconciler"
	n.Variables = pluralVariable(n.Variable, n.Plural)
	if taken(n.Variable) {
		n.Variable += "Object"
	}
	if n.Variables == n.Variable || taken(n.Variables) {
		n.Variables += "Informer"
	}
	return nil
}

var (
	versions = regexp.MustCompile(`^v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?$`)
	kinds    = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	elements = regexp.MustCompile(`^[A-Za-z0-9_~][A-Za-z0-9_.~-]*$`)
)

// longestKind leaves room for the suffixes of names in manifests, which have 63 characters at
// most. Source: k8s.io/apimachinery/pkg/util/validation, DNS1035LabelMaxLength.
const longestKind = validation.DNS1035LabelMaxLength - len("-controller")

// inPackage are the names that the package of the types declares itself.
var inPackage = []string{"GroupVersion", "Scheme", "Ready"}

func (n *names) check() error {
	if err := checkModule(n.Module); err != nil {
		return err
	}
	switch {
	case len(validation.IsDNS1123Subdomain(n.Group)) > 0 || !strings.Contains(n.Group, "."):
		return fmt.Errorf("--group=%s: want a domain name with a dot in lower case, such as example.com", n.Group)
	case protected(n.Group):
		return fmt.Errorf("--group=%s: groups below k8s.io and kubernetes.io belong to Kubernetes, and API servers refuse them without an approval; choose a domain of your own", n.Group)
	case !versions.MatchString(n.Version):
		return fmt.Errorf("--version=%s: want a version of an API, such as v1, v1alpha1 or v2beta3", n.Version)
	case !kinds.MatchString(n.Kind):
		return fmt.Errorf("--kind=%s: want a name in CamelCase of letters and digits, such as Website", n.Kind)
	case len(n.Kind) > longestKind:
		return fmt.Errorf("--kind=%s: want %d characters at most", n.Kind, longestKind)
	case slices.Contains(inPackage, n.Kind):
		return fmt.Errorf("--kind=%s: the package of the types declares this name itself; choose another one", n.Kind)
	case len(validation.IsDNS1035Label(n.Plural)) > 0:
		return fmt.Errorf("--plural=%s: want lower-case letters, digits and dashes, such as websites", n.Plural)
	case n.ShortName != "" && len(validation.IsDNS1035Label(n.ShortName)) > 0:
		return fmt.Errorf("--short-name=%s: want lower-case letters, digits and dashes, such as ws", n.ShortName)
	case n.ShortName == n.Plural || n.ShortName == strings.ToLower(n.Kind):
		return fmt.Errorf("--short-name=%s: kubectl takes this name already; want another one, or none", n.ShortName)
	}
	return nil
}

// checkModule returns an error for what no module path can be.
// Source: https://go.dev/ref/mod#go-mod-file-ident.
func checkModule(path string) error {
	for element := range strings.SplitSeq(path, "/") {
		if !elements.MatchString(element) || strings.HasSuffix(element, ".") {
			return fmt.Errorf("%q is not a module path: want letters, digits, and any of -._~ between slashes, such as example.com/website", path)
		}
	}
	return nil
}

// protected reports whether API servers want an approval for the group.
// Source: k8s.io/apiextensions-apiserver/pkg/apihelpers, IsProtectedCommunityGroup.
func protected(group string) bool {
	for _, domain := range []string{"k8s.io", "kubernetes.io"} {
		if group == domain || strings.HasSuffix(group, "."+domain) {
			return true
		}
	}
	return false
}

// oldestGo is the oldest version of Go that the library can be built with.
const oldestGo = "1.26.0"

// OldestGo returns the version in the module's go.mod.
func (n *names) OldestGo() string { return oldestGo }

var goReleases = regexp.MustCompile(`^go([0-9]+\.[0-9]+\.[0-9]+)( |$)`)

// goVersion returns the version of Go that images are built with: that which built this program, as
// runtime.Version returns it, or else the oldest one that serves. Each is a tag of the image golang.
func goVersion(ours string) string {
	if match := goReleases.FindStringSubmatch(ours); match != nil {
		return match[1]
	}
	return oldestGo
}

var majors = regexp.MustCompile(`^v[0-9]+$`)

// folderOf returns the folder of a module: the last element of its path that is no version.
func folderOf(module string) string {
	if base := path.Base(module); !majors.MatchString(base) || path.Dir(module) == "." {
		return base
	}
	return path.Base(path.Dir(module))
}

// lowerCamel returns a kind as the name of a variable: DNSRecord is dnsRecord.
func lowerCamel(kind string) string {
	letters := []rune(kind)
	for i := range letters {
		if !unicode.IsUpper(letters[i]) || i > 0 && i+1 < len(letters) && unicode.IsLower(letters[i+1]) {
			break
		}
		letters[i] = unicode.ToLower(letters[i])
	}
	return string(letters)
}

// pluralVariable returns the plural of a variable, with the capitals of the variable: cronTabs
// for cronTab and crontabs.
func pluralVariable(variable, plural string) string {
	plural = strings.ReplaceAll(plural, "-", "")
	same := 0
	for same < min(len(variable), len(plural)) && unicode.ToLower(rune(variable[same])) == rune(plural[same]) {
		same++
	}
	return variable[:same] + plural[same:]
}

// inTemplates are the names that the templates use themselves.
var inTemplates = []string{
	"api", "apierrors", "applied", "c", "cache", "changed", "client", "cluster", "configMap", "configMapKey", "configMaps", "context",
	"controller", "controllers", "corev1", "create", "created", "ctx", "ended", "err", "errors", "events", "fakeapi", "file", "get",
	"greeting", "h", "have", "inCluster", "inMemory", "key", "label", "m", "message", "meta", "metav1", "mgr", "name",
	"namespace", "next", "o", "object", "os", "owned", "r", "rbacv1", "reason", "reconcile", "recorder", "req", "rights",
	"role", "server", "serving", "setpointtest", "slog", "status", "stop", "synctest", "t", "test", "testing", "time", "value", "yaml",
}

// taken reports whether a variable must not have this name.
func taken(variable string) bool {
	return token.IsKeyword(variable) || types.Universe.Lookup(variable) != nil || slices.Contains(inTemplates, variable)
}
