// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// secretDir is a folder that a Secret is mounted at.
type secretDir struct {
	dir, secret string
	keys        []string // that are read, in their order
}

// systemDirs are folders of an image that must not be covered by a volume.
var systemDirs = []string{"/", "/bin", "/dev", "/etc", "/etc/ssl", "/lib", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys", "/usr", "/usr/bin", "/usr/local/bin", "/var", "/var/run"}

// folders finds which folders of the container must be volumes.
func (p *plan) folders() []error {
	var errs []error
	const state = "the cursor and files"
	used := map[string]string{configDir: "the configuration", "/tmp": "temporary files"} // what is mounted where
	claim := func(key, file, what string) (dir string, ok bool) {
		dir = path.Dir(file)
		switch {
		case !path.IsAbs(file) || path.Clean(file) != file:
			errs = append(errs, fmt.Errorf("%s: %q: in a container name a file by its whole path, without . and ..", key, file))
			return "", false
		case slices.Contains(systemDirs, dir):
			errs = append(errs, fmt.Errorf("%s: %q: a volume at %s would cover what is there; use a folder below it", key, file, dir))
			return "", false
		}
		for _, other := range slices.Sorted(maps.Keys(used)) {
			// Within a volume that cannot be written to there is no place to mount another one.
			apart := used[other] != what || what != state && dir != other
			if apart && (within(dir, other) || within(other, dir)) {
				errs = append(errs, fmt.Errorf("%s: %q: %s is for %s; use another folder", key, file, other, used[other]))
				return "", false
			}
		}
		used[dir] = what
		return dir, true
	}
	kept := map[string]bool{}
	keep := func(key, file string) {
		if dir, ok := claim(key, file, state); ok {
			kept[dir] = true
		}
	}
	if p.config.Cursor != "" {
		keep("cursor", p.config.Cursor)
	}
	for i, s := range p.config.Sinks {
		if s.File != nil {
			keep(join(index("sinks", i), "file.path"), s.File.Path)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(kept)) {
		// A folder in another one is in its volume.
		if !slices.ContainsFunc(p.state, func(outer string) bool { return within(dir, outer) }) {
			p.state = append(p.state, dir)
		}
	}
	secrets := map[string][]string{} // keys by folder
	for _, need := range p.config.needs() {
		if need.env != "" {
			if len(validation.IsEnvVarName(need.env)) > 0 || len(validation.IsConfigMapKey(need.env)) > 0 {
				errs = append(errs, fmt.Errorf("%q cannot be the name of an environment variable of a container", need.env))
			}
			p.env = append(p.env, need.env)
			continue
		}
		key, secret := path.Base(need.file), path.Base(path.Dir(need.file))
		dir, ok := claim(need.file, need.file, "secrets")
		if !ok {
			continue
		}
		if len(validation.IsDNS1123Subdomain(secret)) > 0 || len(validation.IsConfigMapKey(key)) > 0 {
			errs = append(errs, fmt.Errorf("%q: the Secret is called as the folder and its key as the file, and %s/%s cannot be called so", need.file, secret, key))
			continue
		}
		secrets[dir] = append(secrets[dir], key)
	}
	slices.Sort(p.env)
	p.env = slices.Compact(p.env)
	for _, dir := range slices.Sorted(maps.Keys(secrets)) {
		slices.Sort(secrets[dir])
		p.secrets = append(p.secrets, secretDir{dir: dir, secret: path.Base(dir), keys: slices.Compact(secrets[dir])})
	}
	return errs
}

// within reports whether a folder is another one, or in it.
func within(dir, outer string) bool {
	return dir == outer || strings.HasPrefix(dir, strings.TrimSuffix(outer, "/")+"/")
}
