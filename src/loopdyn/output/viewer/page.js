"use strict";
(() => {
  const THREE = window.THREE;
  const data = JSON.parse(document.getElementById("data").textContent);
  const $ = (id) => document.getElementById(id);
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;

  // ------------------------------------------------------------------------------------------- numbers

  function unpack({ type, shape, data: text }) {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const values = type === "float64" ? new Float64Array(bytes.buffer) : new Float32Array(bytes.buffer);
    return { values, width: shape.slice(1).reduce((a, b) => a * b, 1) };
  }
  const arrays = Object.fromEntries(Object.entries(data.arrays).map(([name, packed]) => [name, unpack(packed)]));
  const time = arrays.time.values;
  const first = time[0], last = time[time.length - 1];
  const nBodies = data.bodies.length;

  const vector = (v) => new THREE.Vector3(v[0], v[1], v[2]);
  const quaternion = (q) => new THREE.Quaternion(q[1], q[2], q[3], q[0]); // stored with w first
  const number = (v) => {
    if (!Number.isFinite(v)) return "–";
    const size = Math.abs(v);
    const text = size !== 0 && (size < 1e-3 || size >= 1e5) ? v.toExponential(2) : v.toFixed(Math.max(0, Math.min(4, 3 - Math.floor(Math.log10(size || 1)))));
    return text.replaceAll("-", "−");
  };
  function element(tag, properties = {}, ...children) {
    const e = Object.assign(document.createElement(tag), properties);
    e.append(...children);
    return e;
  }

  // Frame just before time t, and how far t is on the way to the next one.
  function moment(t) {
    let low = 0, high = time.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (time[middle] <= t) low = middle; else high = middle;
    }
    if (high === low || t <= time[low]) return [low, 0];
    return [low, Math.min(1, (t - time[low]) / (time[high] - time[low] || 1))];
  }
  function valueAt(array, column, [k, part]) {
    const { values, width } = arrays[array];
    const a = values[k * width + column];
    return part === 0 ? a : a + part * (values[(k + 1) * width + column] - a);
  }

  // --------------------------------------------------------------------------------------------- scene

  const view = data.view;
  const right = vector(view.right), up = vector(view.up), front = vector(view.front);
  const toWorld = new THREE.Matrix4().makeBasis(right, up, front); // picture axes: right, up, towards the viewer
  const low = vector(view.low), high = vector(view.high);
  const centre = low.clone().add(high).multiplyScalar(0.5).applyMatrix4(toWorld);
  const reach = Math.max(low.distanceTo(high) / 2, data.size * 0.5);
  const bar = data.bar;

  const canvas = $("scene");
  const renderer = new THREE.WebGLRenderer({ canvas, antialias: true, alpha: true, preserveDrawingBuffer: true });
  renderer.setPixelRatio(Math.min(devicePixelRatio, 2));
  renderer.shadowMap.enabled = true;
  renderer.shadowMap.type = THREE.PCFShadowMap;
  const scene = new THREE.Scene();
  const camera = new THREE.PerspectiveCamera(26, 1, reach / 100, reach * 60);
  camera.up.copy(up);
  let dirty = true;

  scene.add(new THREE.HemisphereLight(0xffffff, 0x8a93a0, 2.1));
  const sun = new THREE.DirectionalLight(0xffffff, 2.4);
  sun.position.copy(centre).addScaledVector(up, 3 * reach).addScaledVector(front, 2 * reach).addScaledVector(right, 1.2 * reach);
  sun.target.position.copy(centre);
  sun.castShadow = true;
  sun.shadow.mapSize.set(2048, 2048);
  sun.shadow.radius = 4;
  sun.shadow.bias = -0.0005;
  sun.shadow.normalBias = bar * 0.5;
  Object.assign(sun.shadow.camera, { left: -1.6 * reach, right: 1.6 * reach, top: 1.6 * reach, bottom: -1.6 * reach, near: reach / 10, far: 8 * reach });
  scene.add(sun, sun.target);

  const paint = (colour, more = {}) => new THREE.MeshStandardMaterial({ color: colour, roughness: 0.55, metalness: 0.05, ...more });
  const steel = paint("#555d69"), ground = paint("#8a8f98", { roughness: 0.9 }), rail = paint("#aab0b9", { roughness: 0.7 });

  // Things to point at: each mesh knows what it belongs to.
  const targets = [];
  function mesh(geometry, material, owner, shadow = true) {
    const m = new THREE.Mesh(geometry, material);
    m.castShadow = shadow;
    m.receiveShadow = shadow;
    if (owner) { m.userData.owner = owner; targets.push(m); }
    return m;
  }
  // Cylinders of three.js stand along y; ours along z.
  const cylinder = (radius, length, sides = 32) => new THREE.CylinderGeometry(radius, radius, length, sides).rotateX(Math.PI / 2);
  const capsule = (radius, length) => new THREE.CapsuleGeometry(radius, length, 8, 24).rotateX(Math.PI / 2);

  const bodies = data.bodies.map((body, row) => {
    const group = new THREE.Group();
    group.userData = { kind: "body", row, name: body.name };
    const material = paint(body.colour);
    for (const shape of body.shapes) {
      const m = mesh(shapeGeometry(shape), shape.kind === "plate" || shape.kind === "mesh" ? paint(body.colour, { side: THREE.DoubleSide }) : material, group.userData);
      m.position.copy(vector(shape.position));
      m.quaternion.copy(quaternion(shape.rotation));
      group.add(m);
    }
    scene.add(group);
    return group;
  });

  function shapeGeometry({ kind, size, points }) {
    if (kind === "rod") return capsule(size[0], size[1]);
    if (kind === "cylinder") return cylinder(size[0], size[1], 64);
    if (kind === "sphere") return new THREE.SphereGeometry(size[0], 40, 24);
    if (kind === "box") return new THREE.BoxGeometry(size[0], size[1], size[2]);
    const { values } = unpack(points);
    if (kind === "plate") {
      const outline = new THREE.Shape();
      for (let k = 0; k < values.length; k += 2) outline[k ? "lineTo" : "moveTo"](values[k], values[k + 1]);
      outline.closePath();
      const round = bar * 0.9; // a rim around the joints, as bars have
      const plate = new THREE.ExtrudeGeometry(outline, { depth: size[0], bevelEnabled: true, bevelSize: round, bevelThickness: size[0] * 0.3, bevelSegments: 3 });
      return plate.translate(0, 0, -size[0] / 2);
    }
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.BufferAttribute(values, 3));
    geometry.computeVertexNormals();
    return geometry;
  }

  const centres = bodies.slice(data.bases).map((group, k) => {
    const body = data.bodies[k + data.bases];
    const ball = mesh(new THREE.SphereGeometry(bar * 0.75, 20, 12), new THREE.MeshBasicMaterial({ color: "#111111", depthTest: false }), group.userData, false);
    const rim = mesh(new THREE.SphereGeometry(bar * 1.0, 20, 12), new THREE.MeshBasicMaterial({ color: "#ffffff", depthTest: false }), group.userData, false);
    rim.renderOrder = 5;
    ball.renderOrder = 6;
    const pair = new THREE.Group();
    pair.position.copy(vector(body.com));
    pair.add(rim, ball);
    group.add(pair);
    return pair;
  });

  // ---------------------------------------------------------------------------------------- joint symbols

  const joints = data.joints.map((joint) => {
    const owner = { kind: "joint", joint, name: joint.name };
    const onParent = new THREE.Group(), onChild = new THREE.Group();
    for (const [group, frame, row] of [[onParent, joint.F, joint.parent], [onChild, joint.M, joint.child]]) {
      group.position.copy(vector(frame.position));
      group.quaternion.copy(quaternion(frame.rotation));
      bodies[row].add(group);
    }
    drawSymbol(joint, owner, onParent, onChild);
    if (joint.parent < data.bases || joint.child < data.bases) support(joint, owner);
    return { joint, owner, onParent, onChild };
  });

  function drawSymbol(joint, owner, onParent, onChild) {
    const r = joint.radius;
    const put = (group, geometry, material = steel) => { const m = mesh(geometry, material, owner); group.add(m); return m; };
    const along = (m, direction) => m.quaternion.setFromUnitVectors(new THREE.Vector3(0, 0, 1), direction.normalize());
    switch (joint.type) {
      case "revolute":
        put(onParent, cylinder(1.9 * r, 3.6 * r));
        put(onParent, cylinder(0.9 * r, 4.2 * r), rail);
        break;
      case "prismatic":
        put(onChild, new THREE.BoxGeometry(2.9 * r, 2.9 * r, 6 * r));
        guide(joint, onParent, r, owner);
        break;
      case "cylindrical":
        put(onChild, cylinder(1.7 * r, 6 * r));
        guide(joint, onParent, r, owner);
        break;
      case "helical": {
        put(onChild, cylinder(2 * r, 4 * r));
        guide(joint, onParent, r, owner);
        const [from, to] = joint.travel;
        const turns = new THREE.CatmullRomCurve3(Array.from({ length: 97 }, (_, k) => {
          const angle = (k / 96) * 12 * Math.PI;
          return new THREE.Vector3(1.1 * r * Math.cos(angle), 1.1 * r * Math.sin(angle), from - 6 * r + (k / 96) * (to - from + 12 * r));
        }));
        put(onParent, new THREE.TubeGeometry(turns, 192, 0.3 * r, 6), rail);
        break;
      }
      case "universal": {
        const arm = 2.6 * r;
        along(put(onParent, cylinder(0.8 * r, 2 * arm)), new THREE.Vector3(1, 0, 0));
        along(put(onChild, cylinder(0.8 * r, 2 * arm)), vector(joint.second));
        put(onParent, new THREE.SphereGeometry(1.35 * r, 24, 16));
        break;
      }
      case "spherical":
        put(onParent, new THREE.SphereGeometry(2.1 * r, 32, 20));
        break;
      case "planar":
        put(onParent, new THREE.BoxGeometry(12 * r, 12 * r, 0.4 * r), rail);
        put(onChild, cylinder(1.6 * r, 3 * r));
        break;
      case "translational":
        for (const axis of [[1, 0, 0], [0, 1, 0], [0, 0, 1]]) along(put(onChild, cylinder(0.6 * r, 7 * r)), vector(axis));
        break;
      case "weld":
        put(onParent, new THREE.BoxGeometry(2.6 * r, 2.6 * r, 2.6 * r));
        break;
      default:
        put(onParent, new THREE.OctahedronGeometry(2.1 * r));
    }
  }

  // What a slide runs on: seen where it is fixed to the ground; on a body its own shape is enough.
  function guide(joint, group, r, owner) {
    if (joint.parent >= data.bases) return;
    const [from, to] = joint.travel;
    const m = mesh(cylinder(1.1 * r, to - from + 14 * r), rail, owner);
    m.position.z = (from + to) / 2;
    group.add(m);
    for (const end of [from - 7 * r, to + 7 * r]) {
      const stop = mesh(cylinder(1.9 * r, 1.2 * r), ground, owner);
      stop.position.z = end;
      group.add(stop);
    }
  }

  function support(joint, owner) {
    if (["prismatic", "cylindrical", "helical"].includes(joint.type) && joint.parent < data.bases) return;
    const [frame, row] = joint.parent < data.bases ? [joint.F, joint.parent] : [joint.M, joint.child];
    addFoot(row, frame.position, joint.radius, owner);
  }
  function addFoot(row, point, r, owner) {
    const height = 6 * r;
    const foot = new THREE.Group();
    const cone = mesh(new THREE.CylinderGeometry(1.2 * r, 3.6 * r, height, 4).rotateY(Math.PI / 4), ground, owner);
    cone.position.y = -height / 2;
    const plate = mesh(new THREE.BoxGeometry(8.5 * r, 0.9 * r, 8.5 * r), ground, owner);
    plate.position.y = -height - 0.45 * r;
    foot.add(cone, plate);
    foot.position.copy(vector(point));
    foot.quaternion.setFromRotationMatrix(toWorld); // upright at the reference pose, where ground axes are world axes
    bodies[row].add(foot);
  }

  const spans = data.spans.map((span) => {
    const owner = { kind: "span", span, name: span.name };
    const group = new THREE.Group();
    if (span.kind === "coil") {
      const coils = 9, steps = 16 * coils;
      const path = new THREE.CatmullRomCurve3(Array.from({ length: steps + 1 }, (_, k) => {
        const s = k / steps, radius = s < 0.08 || s > 0.92 ? 0 : 2 * bar, angle = 2 * Math.PI * coils * s;
        return new THREE.Vector3(radius * Math.cos(angle), radius * Math.sin(angle), s);
      }));
      group.add(mesh(new THREE.TubeGeometry(path, 2 * steps, 0.35 * bar, 6), paint("#c2803a"), owner));
    } else {
      const rod = mesh(cylinder(0.6 * bar, 1), paint(span.kind === "rod" ? "#6c7a89" : "#c2803a"), owner);
      rod.position.z = 0.5;
      group.add(rod);
    }
    scene.add(group);
    span.bodies.forEach((row, n) => { if (row < data.bases) addFoot(row, span.points[n], bar, owner); });
    return { span, group };
  });

  // ------------------------------------------------------------------------------------------------ floor

  const step = ((size) => { const ten = 10 ** Math.floor(Math.log10(size)); return [1, 2, 5, 10].map((f) => f * ten).find((s) => s >= size); })(reach / 6 / data.units.length.si) * data.units.length.si;
  const cells = 2 * Math.ceil((7 * reach) / step / 2);
  const floor = new THREE.Group();
  const grid = new THREE.GridHelper(cells * step, cells);
  grid.material.vertexColors = false;
  const shade = new THREE.Mesh(new THREE.PlaneGeometry(cells * step, cells * step).rotateX(-Math.PI / 2), new THREE.ShadowMaterial({ opacity: 0.22 }));
  shade.receiveShadow = true;
  grid.position.y = 0.0005 * reach;
  floor.add(grid, shade);
  const lowest = Math.min(low.y, ...data.joints.filter((j) => j.parent < data.bases || j.child < data.bases).map((j) => {
    const base = j.parent < data.bases ? j.F : j.M;
    return vector(base.position).dot(up) - 7 * j.radius;
  }));
  const floorAt = new THREE.Vector3((low.x + high.x) / 2, lowest - 1.5 * bar, (low.z + high.z) / 2);
  floorAt.x = Math.round(floorAt.x / step) * step;
  floorAt.z = Math.round(floorAt.z / step) * step;
  floor.position.copy(floorAt.applyMatrix4(toWorld));
  floor.quaternion.setFromRotationMatrix(toWorld);
  scene.add(floor);

  // ----------------------------------------------------------------------------------------------- traces

  // A tube along the path of a body point; its triangles follow the frames, so that a part of it is a part of time.
  function path(row, point) {
    const p = arrays.position.values, q = arrays.rotation.values;
    const points = Array.from({ length: time.length }, (_, k) => {
      const i = k * nBodies + row;
      return vector(point).applyQuaternion(quaternion(q.subarray(4 * i, 4 * i + 4))).add(vector(p.subarray(3 * i, 3 * i + 3)));
    });
    const sides = 6, radius = 0.32 * bar, positions = [], normals = [], indices = [];
    let across = new THREE.Vector3();
    for (let k = 0; k < points.length; k++) {
      const tangent = points[Math.min(k + 1, points.length - 1)].clone().sub(points[Math.max(k - 1, 0)]);
      if (tangent.lengthSq() === 0) tangent.copy(up); else tangent.normalize();
      across.addScaledVector(tangent, -across.dot(tangent));
      if (across.lengthSq() < 1e-6) across = new THREE.Vector3(tangent.y, tangent.z, tangent.x).cross(tangent);
      if (across.lengthSq() < 1e-6) across.copy(right);
      across.normalize();
      const other = tangent.clone().cross(across);
      for (let s = 0; s < sides; s++) {
        const angle = (2 * Math.PI * s) / sides;
        const normal = across.clone().multiplyScalar(Math.cos(angle)).addScaledVector(other, Math.sin(angle));
        normals.push(...normal.toArray());
        positions.push(...points[k].clone().addScaledVector(normal, radius).toArray());
        if (k > 0) {
          const a = (k - 1) * sides + s, b = (k - 1) * sides + ((s + 1) % sides), c = a + sides, d = b + sides;
          indices.push(a, b, c, b, d, c);
        }
      }
    }
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.Float32BufferAttribute(positions, 3));
    geometry.setAttribute("normal", new THREE.Float32BufferAttribute(normals, 3));
    geometry.setIndex(indices);
    return { geometry, perFrame: 6 * sides };
  }

  const traces = new Map();
  const traceGroup = new THREE.Group();
  scene.add(traceGroup);
  function toggleTrace({ name, body, point }) {
    const known = traces.get(name);
    if (known) {
      traceGroup.remove(known.whole, known.past);
      known.whole.geometry.dispose();
      traces.delete(name);
    } else {
      const { geometry, perFrame } = path(body, point);
      const colour = data.bodies[body].colour;
      const past = new THREE.Mesh(geometry.clone(), new THREE.MeshBasicMaterial({ color: colour }));
      const whole = new THREE.Mesh(geometry, new THREE.MeshBasicMaterial({ color: colour, transparent: true, opacity: 0.28, depthWrite: false }));
      traceGroup.add(whole, past);
      traces.set(name, { whole, past, perFrame });
      show.traces = true;
    }
    fillTraces();
    refresh();
  }
  const traceable = [
    ...data.joints.map((j) => ({ name: j.name, body: j.child >= data.bases ? j.child : j.parent, point: j.child >= data.bases ? j.M.position : j.F.position })),
    ...data.bodies.slice(data.bases).map((b, k) => ({ name: `centre of ${b.name}`, body: k + data.bases, point: b.com })),
    ...data.traces.filter((t) => !data.joints.some((j) => j.name === t.name)),
  ];
  // Shows or hides the path of any point of a body, given in the body's frame; its name has its reference position.
  function addPoint(row, own) {
    const { position, rotation } = data.bodies[row].reference;
    const at = own.clone().applyQuaternion(quaternion(rotation)).add(vector(position));
    const name = `${data.bodies[row].name} (${at.toArray().map((v) => Number((v / data.units.length.si).toPrecision(4))).join(", ")})`;
    if (!traceable.some((t) => t.name === name)) traceable.push({ name, body: row, point: own.toArray() });
    toggleTrace(traceable.find((t) => t.name === name));
    return name;
  }
  function fillTraces() {
    const list = $("trace");
    list.replaceChildren(element("option", { value: "", textContent: "choose a point …" }),
      ...traceable.map((t, k) => element("option", { value: k, textContent: (traces.has(t.name) ? "✓ " : "") + t.name })));
  }

  // ----------------------------------------------------------------------------------------------- arrows

  // Largest length over time of `count` columns of the wrenches, from `column` of every `every` on.
  const largest = (column, count, every = arrays.wrench ? arrays.wrench.width : 0) => {
    if (!arrays.wrench) return 0;
    const { values } = arrays.wrench;
    let most = 0;
    for (let k = column; k < values.length; k += every) most = Math.max(most, Math.hypot(...values.subarray(k, k + count)));
    return most;
  };
  const open = new Map(data.quantities.filter((g) => g.open).map((g) => [`${g.key}/${g.unit}`, g.open]));
  const kinds = { forces: { offset: 3, unit: data.units.force.unit, colour: "#d7263d", most: largest(3, 3, 6) }, moments: { offset: 0, unit: data.units.torque.unit, colour: "#7b3fb8", most: largest(0, 3, 6) } };
  const arrows = [];
  for (const [kind, { offset, unit, colour, most }] of Object.entries(kinds)) {
    for (const { joint, owner, onChild } of joints) {
      if (joint.wrench < 0 || most === 0) continue;
      // pale where a part of it is not determined; a zero that is not determined would make all planar ones pale
      const undetermined = (open.get(`wrench:${joint.name}/${unit}`) || []).some((isOpen, n) => isOpen && largest(6 * joint.wrench + offset + n, 1) > 1e-6 * most);
      const material = new THREE.MeshStandardMaterial({ color: colour, roughness: 0.6, transparent: undetermined, opacity: undetermined ? 0.45 : 1 });
      const group = new THREE.Group();
      const shaft = mesh(cylinder(0.7 * bar, 1, 16).translate(0, 0, 0.5), material, owner, false);
      const heads = Array.from({ length: kind === "moments" ? 2 : 1 }, () => mesh(new THREE.ConeGeometry(1.9 * bar, 4.4 * bar, 20).rotateX(Math.PI / 2).translate(0, 0, -2.2 * bar), material, owner, false));
      group.add(shaft, ...heads);
      scene.add(group);
      arrows.push({ kind, joint, group, shaft, heads, offset, onChild });
    }
  }
  const arrowLength = 0.55 * data.size;
  const force = new THREE.Vector3(), place = new THREE.Vector3(), axisZ = new THREE.Vector3(0, 0, 1);
  function placeArrows(when) {
    for (const { kind, joint, group, shaft, heads, offset, onChild } of arrows) {
      const column = 6 * joint.wrench + offset;
      force.set(valueAt("wrench", column, when), valueAt("wrench", column + 1, when), valueAt("wrench", column + 2, when));
      const length = (force.length() / kinds[kind].most) * arrowLength;
      group.visible = show[kind] && length > 0.5 * bar;
      if (!group.visible) continue;
      // axes of F, on the child at the origin of M
      force.applyQuaternion(quaternion(joint.F.rotation)).applyQuaternion(bodies[joint.parent].quaternion).normalize();
      group.position.copy(onChild.getWorldPosition(place));
      group.quaternion.setFromUnitVectors(axisZ, force);
      const head = Math.min(1, length / (6 * bar));
      heads.forEach((h, k) => { h.position.z = length - k * 3.4 * bar * head; h.scale.setScalar(head); });
      shaft.scale.set(head, head, Math.max(length - 4 * bar * head, 1e-9));
    }
  }

  // ------------------------------------------------------------------------------------------------- pose

  const a = new THREE.Quaternion(), b = new THREE.Quaternion(), pa = new THREE.Vector3(), pb = new THREE.Vector3();
  function pose(when) {
    const [k, part] = when;
    const p = arrays.position.values, q = arrays.rotation.values;
    for (let row = 0; row < nBodies; row++) {
      const i = k * nBodies + row;
      a.set(q[4 * i + 1], q[4 * i + 2], q[4 * i + 3], q[4 * i]);
      pa.fromArray(p, 3 * i);
      if (part > 0) {
        const j = i + nBodies;
        b.set(q[4 * j + 1], q[4 * j + 2], q[4 * j + 3], q[4 * j]);
        a.slerp(b, part);
        pa.lerp(pb.fromArray(p, 3 * j), part);
      }
      bodies[row].position.copy(pa);
      bodies[row].quaternion.copy(a);
    }
    scene.updateMatrixWorld(true);
    for (const { span, group } of spans) {
      const [start, end] = span.bodies.map((row, n) => vector(span.points[n]).applyMatrix4(bodies[row].matrixWorld));
      const way = end.sub(start);
      group.position.copy(start);
      group.quaternion.setFromUnitVectors(axisZ, way.clone().normalize());
      group.scale.z = Math.max(way.length(), 1e-9);
    }
    for (const { past, perFrame } of traces.values()) past.geometry.setDrawRange(0, perFrame * (k + (part > 0 ? 1 : 0)));
    placeArrows(when);
    for (const one of centrodes.values()) placeCentre(one, when);
  }

  // ----------------------------------------------------------------------------------------------- camera

  const mix = (f, r, u) => front.clone().multiplyScalar(f).addScaledVector(right, r).addScaledVector(up, u);

  // Where the camera looks at and from: azimuth about the vertical from the front, height above the horizon.
  const aim = { target: centre.clone(), distance: 4 * reach, azimuth: 0, height: 0 };
  const steep = Math.PI / 2 - 0.001; // straight down the vertical there is no upright picture
  function placeCamera() {
    aim.height = Math.max(-steep, Math.min(steep, aim.height));
    aim.distance = Math.max(reach / 8, Math.min(25 * reach, aim.distance));
    const level = Math.cos(aim.height);
    camera.position.copy(aim.target).addScaledVector(mix(level * Math.cos(aim.azimuth), level * Math.sin(aim.azimuth), Math.sin(aim.height)), aim.distance);
    camera.lookAt(aim.target);
    camera.updateMatrixWorld();
    dirty = true;
  }
  const touching = new Map(); // pointers that are down
  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); touching.set(event.pointerId, event); });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, (event) => touching.delete(event.pointerId));
  canvas.addEventListener("pointermove", (event) => {
    const from = touching.get(event.pointerId);
    if (!from) return;
    const dx = event.clientX - from.clientX, dy = event.clientY - from.clientY;
    const other = [...touching.values()].find((e) => e.pointerId !== event.pointerId);
    if (other) { // two fingers: spread to zoom, move to shift
      const gap = (e) => Math.hypot(e.clientX - other.clientX, e.clientY - other.clientY);
      aim.distance *= gap(from) / Math.max(gap(event), 1);
      shift(dx / 2, dy / 2);
    } else if (from.buttons & 1 && !from.shiftKey) {
      aim.azimuth -= (2 * Math.PI * dx) / canvas.clientHeight;
      aim.height += (2 * Math.PI * dy) / canvas.clientHeight;
    } else shift(dx, dy);
    touching.set(event.pointerId, event);
    placeCamera();
  });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    aim.distance *= Math.exp(event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0015)); // lines or pixels
    placeCamera();
  }, { passive: false });
  function shift(dx, dy) { // by pixels of the picture, at the distance of the target
    const pixel = (2 * aim.distance * Math.tan((camera.fov * Math.PI) / 360)) / canvas.clientHeight;
    aim.target.addScaledVector(new THREE.Vector3().setFromMatrixColumn(camera.matrix, 0), -dx * pixel);
    aim.target.addScaledVector(new THREE.Vector3().setFromMatrixColumn(camera.matrix, 1), dy * pixel);
  }

  function look(direction) {
    const d = direction.clone().normalize();
    const x = up.clone().cross(d);
    if (x.lengthSq() < 1e-6) x.copy(right);
    x.normalize();
    const y = d.clone().cross(x);
    const tanV = Math.tan((camera.fov * Math.PI) / 360), tanH = tanV * camera.aspect;
    let distance = 0;
    for (let k = 0; k < 8; k++) {
      const corner = new THREE.Vector3(k & 1 ? low.x : high.x, k & 2 ? lowest : high.y, k & 4 ? low.z : high.z).applyMatrix4(toWorld).sub(centre);
      distance = Math.max(distance, Math.abs(corner.dot(x)) / tanH + corner.dot(d), Math.abs(corner.dot(y)) / tanV + corner.dot(d));
    }
    aim.target.copy(centre);
    aim.distance = 1.12 * Math.max(distance, 0.3 * reach);
    aim.azimuth = Math.atan2(d.dot(right), d.dot(front));
    aim.height = Math.asin(Math.max(-1, Math.min(1, d.dot(up))));
    placeCamera();
  }
  const views = {
    home: { none: mix(1, 0.62, 0.5), front: mix(1, 0, 0), top: mix(0.001, 0, 1) }[view.plane],
    front: mix(1, 0, 0),
    side: mix(0, 1, 0),
    top: mix(0.001, 0, 1),
  };

  // ----------------------------------------------------------------------------------------------- labels

  const labels = [];
  const addLabel = (text, kind, where) => {
    const span = element("span", { textContent: text, className: kind });
    $("labels").append(span);
    labels.push({ span, where, kind });
    return span;
  };
  for (const { joint, onChild } of joints) addLabel(joint.name, "joint", (v) => onChild.getWorldPosition(v));
  data.bodies.forEach((body, row) => { if (row >= data.bases) addLabel(body.name, "body", (v) => v.copy(vector(body.com)).applyMatrix4(bodies[row].matrixWorld)); });
  function placeLabels() {
    $("labels").hidden = !show.labels;
    if (!show.labels) return;
    const { clientWidth: w, clientHeight: h } = canvas;
    const taken = [];
    for (const { span, where, kind } of labels) {
      const v = where(place).project(camera);
      span.hidden = !(v.z <= 1); // also where there is no place, as of an instant centre far away
      const [dx, dy] = kind === "joint" ? [10, -24] : [8, 6];
      const y = ((1 - v.y) / 2) * h + dy;
      let x = ((v.x + 1) / 2) * w + dx;
      // joints at one place have their names side by side
      const same = kind === "joint" && taken.find((other) => Math.abs(other.y - y) < 6 && Math.abs(other.x - x) < 6);
      if (same) [x, same.end] = [same.end, same.end + span.offsetWidth];
      else if (kind === "joint") taken.push({ x, y, end: x + span.offsetWidth });
      span.style.transform = `translate(${x}px, ${y}px)`;
    }
  }

  // ------------------------------------------------------------------------- instant centres, velocity polygon

  const moves = data.in_plane !== null; // velocities are there, all in one plane
  const plane = moves ? data.in_plane.normal : null;
  const fastest = moves ? arrays.spin.values.reduce((most, v) => Math.max(most, Math.abs(v)), 0) : 0;
  const slowest = 1e-6 * fastest; // rounding of the stored numbers
  function motionOf(row, when) {
    const three = (name) => [0, 1, 2].map((n) => valueAt(name, 3 * row + n, when));
    return { position: three("position"), velocity: three("velocity"), spin: valueAt("spin", row, when) };
  }
  const centreAt = (one, other, when) => window.inPlane.instantCentre(motionOf(one, when), motionOf(other, when), plane, slowest);
  const inPicture = (p) => p.distanceTo(centre) < 6 * reach;

  // Locus of the instant centre in the frame of a body, in pieces: it is interrupted where the centre is far away.
  function centrode(one, other, row, colour) {
    const pairs = [];
    let previous = null, side = 0;
    time.forEach((_, k) => {
      const found = centreAt(one, other, [k, 0]), now_ = Math.sign(motionOf(one, [k, 0]).spin - motionOf(other, [k, 0]).spin);
      const world = found && vector(found), i = k * nBodies + row;
      const own = world && inPicture(world) ? world.sub(vector(arrays.position.values.subarray(3 * i, 3 * i + 3))).applyQuaternion(quaternion(arrays.rotation.values.subarray(4 * i, 4 * i + 4)).invert()) : null;
      if (own && previous && now_ === side) pairs.push(...previous.toArray(), ...own.toArray());
      previous = own;
      side = now_;
    });
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.Float32BufferAttribute(pairs, 3));
    const drawn = new THREE.LineSegments(geometry, new THREE.LineBasicMaterial({ color: colour, depthTest: false }));
    drawn.renderOrder = 4;
    bodies[row].add(drawn);
    return drawn;
  }
  const centrodes = new Map();
  function toggleCentre(one, other) {
    const key = `${one}/${other}`, known = centrodes.get(key);
    if (known) {
      scene.remove(known.mark);
      for (const drawn of known.loci) { drawn.removeFromParent(); drawn.geometry.dispose(); }
      known.label.remove();
      labels.splice(labels.findIndex((l) => l.span === known.label), 1);
      centrodes.delete(key);
    } else {
      const mark = new THREE.Mesh(new THREE.SphereGeometry(bar * 1.3, 20, 12), new THREE.MeshBasicMaterial({ color: "#d7263d", depthTest: false }));
      mark.renderOrder = 7;
      scene.add(mark);
      // fixed centrode in the frame of the other body, moving centrode in that of the first one
      const loci = [centrode(one, other, other, "#d7263d"), centrode(one, other, one, "#7b3fb8")];
      const label = addLabel(`${data.bodies[one].name} / ${data.bodies[other].name}`, "joint", (v) => v.copy(mark.visible ? mark.position : camera.position));
      centrodes.set(key, { one, other, mark, loci, label });
    }
    refresh();
  }
  function placeCentre({ one, other, mark }, when) {
    const found = centreAt(one, other, when);
    mark.visible = found !== null && inPicture(vector(found));
    if (mark.visible) mark.position.fromArray(found);
  }

  // Velocity images of all moving bodies: the velocities of their joints, in the plane, from the pole of all that stands.
  const planeX = moves ? right.clone().addScaledVector(vector(plane), -right.dot(vector(plane))).normalize() : right;
  const planeY = moves ? vector(plane).cross(planeX) : up;
  function polygonOf(when) {
    const places = joints.map(({ joint }) => {
      const { position, rotation } = { position: motionOf(joint.child, when).position, rotation: rotationAt(joint.child, when) };
      return vector(joint.M.position).applyQuaternion(rotation).add(vector(position)).toArray();
    });
    return data.bodies.map((body, row) => ({ body, row })).slice(data.bases).map(({ body, row }) => ({
      name: body.name, colour: body.colour,
      points: joints.flatMap(({ joint }, n) => {
        if (joint.parent !== row && joint.child !== row) return [];
        const v = vector(window.inPlane.velocityAt(motionOf(row, when), plane, places[n]));
        return [{ joint: joint.name, velocity: [v.dot(planeX), v.dot(planeY)] }];
      }),
    }));
  }
  function rotationAt(row, [k, part]) {
    const q = arrays.rotation.values, i = k * nBodies + row;
    const found = quaternion(q.subarray(4 * i, 4 * i + 4));
    return part > 0 ? found.slerp(quaternion(q.subarray(4 * (i + nBodies), 4 * (i + nBodies) + 4)), part) : found;
  }
  const speedUnit = `${data.units.length.unit}/s`;
  let polygon = null; // its card
  function togglePolygon() {
    if (polygon) polygon.card.remove();
    polygon = polygon ? null : polygonCard();
    $("polygon").setAttribute("aria-pressed", Boolean(polygon));
    refresh();
  }
  function polygonCard() {
    const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const most = Math.max(...Array.from(time, (_, k) => Math.max(...polygonOf([k, 0]).flatMap((b) => b.points.map((p) => Math.hypot(...p.velocity))))));
    const button = element("button", { className: "export", textContent: "SVG", title: "Save the velocity polygon as SVG" });
    button.onclick = () => save(new XMLSerializer().serializeToString(picture), `${data.name}_velocity_polygon.svg`, "image/svg+xml");
    const title = element("h3", {}, "Velocity polygon ", element("small", { textContent: `(${speedUnit})` }));
    const card = element("div", { className: "plot" }, element("header", {}, title, button), picture);
    $("plots").prepend(card);
    return { card, picture, most };
  }
  function drawPolygon(when) {
    const size = 380, middle = size / 2, scale = (0.42 * size) / (polygon.most || 1);
    const make = (tag, given, text = "") => { const e = document.createElementNS("http://www.w3.org/2000/svg", tag); for (const [k, v] of Object.entries(given)) e.setAttribute(k, v); e.textContent = text; return e; };
    const at = ([x, y]) => [middle + scale * x, middle - scale * y];
    const parts = [make("circle", { cx: middle, cy: middle, r: scale * polygon.most, fill: "none", stroke: "#8a8f98", "stroke-dasharray": "3 4" }),
      make("text", { x: 6, y: size - 6, "font-size": 12, fill: "currentColor" }, `circle: ${number(polygon.most / data.units.length.si)} ${speedUnit}, the largest of the motion`),
      make("circle", { cx: middle, cy: middle, r: 3, fill: "currentColor" }), make("text", { x: middle - 14, y: middle + 14, "font-size": 13, fill: "currentColor" }, "o")];
    const named = [];
    for (const { colour, points } of polygonOf(when)) {
      const corners = points.map((p) => at(p.velocity));
      parts.push(make("polygon", { points: corners.map((c) => c.map((v) => v.toFixed(2)).join(",")).join(" "), fill: colour, "fill-opacity": 0.12, stroke: colour, "stroke-width": 2 }));
      points.forEach((p, n) => {
        const [x, y] = corners[n];
        if (Math.hypot(x - middle, y - middle) < 4 || named.some((o) => o.name === p.joint && Math.hypot(o.x - x, o.y - y) < 4)) return;
        named.push({ name: p.joint, x, y });
        parts.push(make("line", { x1: middle, y1: middle, x2: x, y2: y, stroke: "currentColor", "stroke-opacity": 0.5 }), make("text", { x: x + 6, y: y - 5, "font-size": 13, fill: "currentColor" }, p.joint.toLowerCase()));
      });
    }
    polygon.picture.setAttribute("viewBox", `0 0 ${size} ${size}`);
    polygon.picture.replaceChildren(...parts);
  }
  if (moves) {
    const options = (chosen) => data.bodies.map((body, row) => element("option", { value: row, textContent: body.name, selected: row === chosen }));
    $("centre").hidden = false;
    $("centre-one").replaceChildren(...options(Math.min(data.bases + 1, nBodies - 1)));
    $("centre-other").replaceChildren(...options(0));
    $("centre").onsubmit = (event) => {
      event.preventDefault();
      const [one, other] = [$("centre-one"), $("centre-other")].map((list) => Number(list.value));
      if (one !== other) toggleCentre(one, other);
    };
    $("polygon").onclick = togglePolygon;
  }

  // ------------------------------------------------------------------------------------------------ plots

  const palette = ["#3b7dd8", "#e08a1e", "#2ba58c", "#d1495b", "#7a6bd1", "#8a9a2b", "#b5539b", "#4aa3c7", "#a8703c", "#6c7a89"];
  const plots = [];
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function addPlot(number_) {
    const group = data.quantities[number_];
    const title = element("h3", {}, group.title + " ", element("small", { textContent: group.unit ? `(${group.unit})` : "" }));
    const close = element("button", { className: "close", textContent: "×", title: "Remove this plot" });
    close.setAttribute("aria-label", `Remove the plot ${group.title}`);
    const surface = element("canvas");
    surface.setAttribute("role", "img");
    surface.setAttribute("aria-label", `${group.title} over time`);
    const legend = element("div", { className: "legend" });
    const exports = [["CSV", plotTable, "text/csv"], ["SVG", plotPicture, "image/svg+xml"]].map(([kind, write, type]) => {
      const button = element("button", { className: "export", textContent: kind, title: `Save the lines shown as ${kind}` });
      button.setAttribute("aria-label", `Save the plot ${group.title} as ${kind}`);
      button.onclick = () => save(write(plot), `${data.name}_${group.title.replaceAll(" ", "_")}.${kind.toLowerCase()}`, type);
      return button;
    });
    const card = element("div", { className: "plot" }, element("header", {}, title, ...exports, close), surface, legend);
    const hidden = new Set();
    const values = group.names.map((name, k) => {
      const text = element("var");
      const mark = element("i");
      mark.style.borderColor = palette[k % palette.length];
      const open = group.open && group.open[k];
      const entry = element("button", { className: open ? "open" : "", title: open ? `${name}: statically indeterminate; one possible distribution is shown` : name }, mark, name + (open ? " ?" : ""), text);
      entry.onclick = () => {
        if (!hidden.delete(k)) hidden.add(k);
        entry.classList.toggle("off", hidden.has(k));
        plot.scale = null;
        drawPlot(plot);
      };
      legend.append(entry);
      return text;
    });
    const plot = { group, card, surface, values, hidden, scale: null, number: number_ };
    close.onclick = () => { plots.splice(plots.indexOf(plot), 1); card.remove(); fillPlots(); };
    const scrub = (event) => {
      const box = surface.getBoundingClientRect();
      seek(first + ((event.clientX - box.left - margin.left) / (box.width - margin.left - margin.right)) * (last - first));
    };
    surface.onpointerdown = (event) => { pause(); surface.setPointerCapture(event.pointerId); scrub(event); };
    surface.onpointermove = (event) => { if (event.buttons) scrub(event); };
    $("plots").append(card);
    plots.push(plot);
    fillPlots();
    drawPlot(plot);
  }
  function save(text, name, type) {
    const url = URL.createObjectURL(new Blob([text], { type }));
    element("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  }
  const shownLines = ({ group, hidden }) => group.columns.map((column, n) => {
    const { values, width } = arrays[group.array];
    return { n, name: group.names[n], values: Float64Array.from(time, (_, k) => values[k * width + column]) };
  }).filter(({ n }) => !hidden.has(n));
  const plotTable = (plot) => window.inPlane.csv([{ name: "time", unit: "s", values: time }, ...shownLines(plot).map((line) => ({ ...line, unit: plot.group.unit }))]);
  function plotPicture(plot) {
    const { group } = plot, [bottom, top] = (plot.scale = plot.scale || range(plot));
    const across = ticks(bottom, top, 5), below = ticks(first, last > first ? last : first + 1, 6);
    const logged = (v) => (group.log ? Math.log10(Math.abs(v)) : v);
    return window.inPlane.svg({
      title: `${data.name}: ${group.title}` + (group.unit ? ` (${group.unit})` : ""), box: [first, last, bottom, top],
      across: across.found.filter((v) => !group.log || Number.isInteger(v)).map((v) => ({ at: v, text: group.log ? `1e${v}` : tickText(v, across.digits) })),
      below: below.found.map((v, k) => ({ at: v, text: tickText(v, below.digits) + (k === below.found.length - 1 ? " s" : "") })),
      lines: shownLines(plot).map(({ n, name, values }) => ({
        name, colour: palette[n % palette.length], dashed: Boolean(group.open && group.open[n]),
        points: Array.from(values, (v, k) => (Number.isFinite(logged(v)) ? [time[k], logged(v)] : null)),
      })),
    });
  }
  function fillPlots() {
    const shown = new Set(plots.map((p) => p.number));
    $("add").replaceChildren(element("option", { value: "", textContent: "add a quantity …" }),
      ...data.quantities.map((g, k) => element("option", { value: k, textContent: `${g.title} (${g.unit})`, disabled: shown.has(k) })));
  }

  const margin = { left: 46, right: 8, top: 8, bottom: 20 };
  const sizes = {};
  const sizeOf = (name) => sizes[name] ??= arrays[name].values.reduce((most, v) => (Math.abs(v) > most ? Math.abs(v) : most), 0);
  const cleaned = (group, v) => (!group.log && Math.abs(v) < 1e-9 * sizeOf(group.array) ? 0 : v); // rounding reads as zero
  function range(plot) {
    const { group, hidden } = plot;
    const { values, width } = arrays[group.array];
    let bottom = Infinity, top = -Infinity;
    group.columns.forEach((column, n) => {
      if (hidden.has(n)) return;
      for (let k = column; k < values.length; k += width) {
        const v = group.log ? Math.log10(Math.abs(values[k])) : values[k];
        if (Number.isFinite(v)) { bottom = Math.min(bottom, v); top = Math.max(top, v); }
      }
    });
    if (bottom > top) [bottom, top] = [0, 1];
    // rounding is not blown up to a curve: it is judged against the largest number of its array
    const scale = sizeOf(group.array), least = group.log ? 1 : 1e-9 * scale;
    if (top - bottom < least) { const half = group.log ? 1 : Math.max(0.1 * Math.abs(top), 0.01 * scale, 1e-12); bottom -= half; top += half; }
    const room = 0.06 * (top - bottom);
    return [bottom - room, top + room];
  }
  function ticks(from, to, count) {
    const rough = (to - from) / count, ten = 10 ** Math.floor(Math.log10(rough));
    const stepSize = [1, 2, 5, 10].map((f) => f * ten).find((s) => s >= rough);
    const found = [];
    for (let k = Math.ceil(from / stepSize); k * stepSize <= to * (1 + 1e-12) + 1e-300; k++) found.push(k * stepSize);
    return { found, digits: Math.max(0, -Math.floor(Math.log10(stepSize) + 1e-9)) };
  }
  const tickText = (v, digits) => (v !== 0 && (Math.abs(v) >= 1e5 || digits > 4) ? v.toExponential(0) : v.toFixed(digits)).replace("-", "−");

  // Lines and axes are drawn once and kept; at each frame only the cursor is put on top.
  function drawPlot(plot) {
    const { group, surface, hidden } = plot;
    const w = surface.clientWidth, h = surface.clientHeight, ratio = devicePixelRatio || 1;
    if (!w) return;
    surface.width = w * ratio;
    surface.height = h * ratio;
    const g = surface.getContext("2d");
    g.scale(ratio, ratio);
    plot.scale = plot.scale || range(plot);
    const [bottom, top] = plot.scale;
    const x = (t) => margin.left + ((t - first) / (last - first || 1)) * (w - margin.left - margin.right);
    const y = (v) => margin.top + ((top - v) / (top - bottom)) * (h - margin.top - margin.bottom);
    g.font = "11px system-ui, sans-serif";
    g.strokeStyle = css("--line");
    g.fillStyle = css("--soft");
    g.lineWidth = 1;
    const across = ticks(bottom, top, 4);
    g.textAlign = "right";
    g.textBaseline = "middle";
    for (const v of across.found) {
      if (group.log && !Number.isInteger(v)) continue;
      g.beginPath(); g.moveTo(margin.left, y(v)); g.lineTo(w - margin.right, y(v)); g.stroke();
      g.fillText(group.log ? `1e${v}`.replace("-", "−") : tickText(v, across.digits), margin.left - 6, y(v));
    }
    const below = ticks(first, last > first ? last : first + 1, 5);
    g.textBaseline = "top";
    below.found.forEach((t, k) => {
      g.textAlign = x(t) > w - 24 ? "right" : "center";
      g.fillText(tickText(t, below.digits) + (k === below.found.length - 1 ? " s" : ""), Math.min(x(t), w - margin.right), h - margin.bottom + 6);
    });
    g.save();
    g.beginPath();
    g.rect(margin.left, 0, w - margin.left - margin.right, h - margin.bottom);
    g.clip();
    const { values, width } = arrays[group.array];
    group.columns.forEach((column, n) => {
      if (hidden.has(n)) return;
      g.strokeStyle = palette[n % palette.length];
      g.lineWidth = 1.6;
      g.setLineDash(group.open && group.open[n] ? [5, 3] : []);
      g.beginPath();
      let pen = false;
      for (let k = 0; k < time.length; k++) {
        const raw = values[k * width + column], v = group.log ? Math.log10(Math.abs(raw)) : raw;
        if (!Number.isFinite(v)) { pen = false; continue; }
        g[pen ? "lineTo" : "moveTo"](x(time[k]), y(v));
        pen = true;
      }
      g.stroke();
    });
    g.restore();
    plot.still = document.createElement("canvas");
    plot.still.width = surface.width;
    plot.still.height = surface.height;
    plot.still.getContext("2d").drawImage(surface, 0, 0);
    plot.place = { x, y, ratio, h };
    drawCursor(plot, moment(now));
  }
  function drawCursor(plot, when) {
    if (!plot.still) return;
    const { group, surface, values, hidden, place: { x, y, ratio, h } } = plot;
    const g = surface.getContext("2d");
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.clearRect(0, 0, surface.width, surface.height);
    g.drawImage(plot.still, 0, 0);
    g.scale(ratio, ratio);
    g.strokeStyle = css("--ink");
    g.globalAlpha = 0.55;
    g.beginPath(); g.moveTo(x(now), margin.top - 4); g.lineTo(x(now), h - margin.bottom); g.stroke();
    g.globalAlpha = 1;
    group.columns.forEach((column, n) => {
      const v = valueAt(group.array, column, when);
      values[n].textContent = number(cleaned(group, v));
      const shown = group.log ? Math.log10(Math.abs(v)) : v;
      if (hidden.has(n) || !Number.isFinite(shown)) return;
      g.fillStyle = palette[n % palette.length];
      g.beginPath(); g.arc(x(now), y(shown), 3, 0, 2 * Math.PI); g.fill();
    });
  }

  // -------------------------------------------------------------------------------------------------- time

  let now = first, playing = false, before = 0;
  const duration = last - first;
  const speeds = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 1000];
  // Real time, unless that is over in a wink or takes minutes.
  const comfortable = duration >= 1 && duration <= 60 ? 1 : speeds.reduce((best, s) => (Math.abs(Math.log(duration / s / 8)) < Math.abs(Math.log(duration / best / 8)) ? s : best), 1);
  $("speed").replaceChildren(...speeds.map((s) => element("option", { value: s, textContent: `${s}×`, selected: s === comfortable })));
  const digits = Math.max(2, Math.min(6, 3 - Math.floor(Math.log10(duration || 1))));
  const scrubber = $("scrub");
  Object.assign(scrubber, { min: first, max: last, value: first });

  function seek(t) {
    now = Math.min(last, Math.max(first, t));
    scrubber.value = now;
    refresh();
  }
  let stale = true;
  function refresh() { stale = true; dirty = true; }
  function play() {
    if (duration <= 0) return;
    if (now >= last) now = first;
    playing = true;
    before = performance.now();
    $("play").classList.add("playing");
    $("play").setAttribute("aria-label", "Pause");
  }
  function pause() {
    playing = false;
    $("play").classList.remove("playing");
    $("play").setAttribute("aria-label", "Play");
  }
  const toggle = () => (playing ? pause() : play());
  const stepBy = (n) => { pause(); const [k, part] = moment(now); const here = k + (part > 0.5 ? 1 : 0); seek(time[Math.min(time.length - 1, Math.max(0, here + n))]); };

  function tick(stamp) {
    requestAnimationFrame(tick);
    if (playing) {
      const next = now + ((stamp - before) / 1000) * Number($("speed").value);
      before = stamp;
      if (next <= last) seek(Math.max(next, now));
      else if ($("loop").checked) seek(first + ((next - first) % duration));
      else { seek(last); pause(); }
    }
    if (!dirty) return;
    dirty = false;
    if (stale) {
      stale = false;
      const when = moment(now);
      pose(when);
      if (show.panel && polygon) drawPolygon(when);
      if (show.panel) for (const plot of plots) drawCursor(plot, when);
      $("clock").textContent = `${now.toFixed(digits)} s of ${last.toFixed(digits)} s`;
      if (hovered) describeHovered();
    }
    renderer.render(scene, camera);
    placeLabels();
  }

  // --------------------------------------------------------------------------------------------- pointing

  const ray = new THREE.Raycaster(), pointer = new THREE.Vector2();
  let hovered = null, lit = [];
  const declared = (dimension, x) => [number(x / data.units[dimension].si), data.units[dimension].unit];
  const rows = (list) => element("table", {}, ...list.map((cells) => element("tr", {}, ...cells.map((c) => element("td", { textContent: c })))));
  function describeHovered() {
    const when = moment(now);
    const parts = [element("h3", { textContent: hovered.name })];
    if (hovered.kind === "body") {
      const body = data.bodies[hovered.row];
      if (hovered.row >= data.bases) {
        const p = vector(body.com).applyMatrix4(bodies[hovered.row].matrixWorld);
        parts.push(rows([["mass", ...declared("mass", body.mass)], ...["x", "y", "z"].map((n) => [`centre ${n}`, ...declared("length", p[n])])]));
      } else parts.push(element("p", { textContent: "fixed, or moved as given" }));
    } else if (hovered.kind === "joint") {
      const { joint } = hovered;
      parts.push(element("p", { textContent: `${joint.type}: ${data.bodies[joint.parent].name} → ${data.bodies[joint.child].name}` }));
      const list = [];
      if (arrays.q) for (const k of joint.q) list.push([data.coordinates[k].name, number(valueAt("q", k, when)), data.coordinates[k].unit === "1" ? "" : data.coordinates[k].unit]);
      if (arrays.v) for (const k of joint.v) list.push([`speed ${data.speeds[k].name}`, number(valueAt("v", k, when)), data.speeds[k].unit]);
      if (joint.wrench >= 0) {
        for (const group of data.quantities.filter((g) => g.key === `wrench:${joint.name}`)) {
          group.names.forEach((name, n) => list.push([name + (group.open[n] ? " ?" : ""), number(cleaned(group, valueAt("wrench", group.columns[n], when))), group.unit]));
        }
      }
      parts.push(rows(list));
      if (list.some(([name]) => name.endsWith("?"))) parts.push(element("p", { textContent: "?: statically indeterminate" }));
    } else {
      const { span } = hovered;
      const [p, q] = span.bodies.map((row, n) => vector(span.points[n]).applyMatrix4(bodies[row].matrixWorld));
      parts.push(element("p", { textContent: span.kind.replace("_", " ") }), rows([["length", ...declared("length", p.distanceTo(q))]]));
    }
    $("tip").replaceChildren(...parts);
  }
  let touched = null; // point of what was found last
  function find(event) {
    const box = canvas.getBoundingClientRect();
    pointer.set(((event.clientX - box.left) / box.width) * 2 - 1, 1 - ((event.clientY - box.top) / box.height) * 2);
    ray.setFromCamera(pointer, camera);
    const hit = ray.intersectObjects(targets.filter((m) => { for (let o = m; o; o = o.parent) if (!o.visible) return false; return true; }), false)[0];
    touched = hit ? hit.point : null;
    return hit ? hit.object.userData.owner : null;
  }
  function hover(owner, event) {
    if (owner !== hovered) {
      for (const m of lit) m.material = m.userData.plain;
      lit = owner ? targets.filter((m) => m.userData.owner === owner && m.material.emissive) : [];
      for (const m of lit) {
        m.userData.plain = m.material;
        m.material = m.material.clone();
        m.material.emissive.set("#4a4a20");
      }
      hovered = owner;
      dirty = true;
    }
    const tip = $("tip");
    tip.hidden = !owner;
    canvas.style.cursor = owner ? "pointer" : "grab";
    if (!owner) return;
    describeHovered();
    const box = $("stage").getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    tip.style.left = `${x + 16 + tip.offsetWidth > box.width ? x - 16 - tip.offsetWidth : x + 16}px`;
    tip.style.top = `${Math.max(4, Math.min(y + 12, box.height - tip.offsetHeight - 4))}px`;
  }
  let pressed = null;
  canvas.addEventListener("pointermove", (event) => { if (!event.buttons) hover(find(event), event); });
  canvas.addEventListener("pointerleave", () => hover(null));
  canvas.addEventListener("pointerdown", (event) => { pressed = [event.clientX, event.clientY]; hover(null); });
  canvas.addEventListener("pointerup", (event) => {
    if (!pressed || Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]) > 3) return;
    const owner = find(event);
    if (owner && owner.kind === "body" && event.shiftKey) return void addPoint(owner.row, bodies[owner.row].worldToLocal(touched.clone()));
    const name = owner && (owner.kind === "joint" ? owner.name : owner.kind === "body" ? `centre of ${owner.name}` : "");
    const trace = traceable.find((t) => t.name === name);
    if (trace) toggleTrace(trace);
  });

  // --------------------------------------------------------------------------------------------- controls

  const few = data.joints.length <= 14;
  const show = { labels: few, forces: few && kinds.forces.most > 0, moments: false, traces: true, centres: false, grid: true, panel: duration > 0 && innerWidth > 700 };
  function apply() {
    for (const button of document.querySelectorAll("[data-toggle]")) button.setAttribute("aria-pressed", show[button.dataset.toggle]);
    traceGroup.visible = show.traces;
    floor.visible = show.grid;
    for (const mark of centres) mark.visible = show.centres;
    document.querySelector("main").classList.toggle("bare", !show.panel);
    const lines = [show.grid ? `floor: ${Number((step / data.units.length.si).toPrecision(1))} ${data.units.length.unit} squares` : ""];
    for (const kind of ["forces", "moments"]) if (show[kind] && kinds[kind].most > 0) lines.push(`longest ${kind.slice(0, -1)} arrow: ${number(kinds[kind].most)} ${kinds[kind].unit}`);
    $("scales").textContent = lines.filter(Boolean).join("  ·  ");
    refresh();
  }
  const flip = (name) => { show[name] = !show[name]; apply(); if (name === "panel") resize(); };
  for (const button of document.querySelectorAll("[data-toggle]")) {
    const name = button.dataset.toggle;
    if (kinds[name] && kinds[name].most === 0) { button.disabled = true; button.title = "No reactions are stored in this page"; }
    button.onclick = () => flip(name);
  }
  for (const button of document.querySelectorAll("[data-view]")) button.onclick = () => look(views[button.dataset.view]);

  let theme = data.theme === "auto" ? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light") : data.theme;
  function setTheme(name) {
    theme = name;
    document.documentElement.dataset.theme = name;
    $("theme").textContent = name === "dark" ? "Light" : "Dark";
    grid.material.color.set(name === "dark" ? "#3a4554" : "#c3cad4");
    shade.material.opacity = name === "dark" ? 0.45 : 0.2;
    steel.color.set(name === "dark" ? "#c4ccd8" : "#454d59");
    rail.color.set(name === "dark" ? "#8b95a4" : "#b4bac4");
    scene.fog = new THREE.Fog(css("--sky"), 4.5 * reach, 13 * reach);
    for (const plot of plots) drawPlot(plot);
    dirty = true;
  }
  $("theme").onclick = () => setTheme(theme === "dark" ? "light" : "dark");

  function savePicture() {
    renderer.render(scene, camera);
    const flat = element("canvas", { width: canvas.width, height: canvas.height });
    const g = flat.getContext("2d");
    g.fillStyle = css("--back");
    g.fillRect(0, 0, flat.width, flat.height);
    g.drawImage(canvas, 0, 0);
    element("a", { href: flat.toDataURL("image/png"), download: `${data.name}_${now.toFixed(digits)}s.png` }).click();
  }
  $("picture").onclick = savePicture;
  $("help").onclick = () => $("keys").showModal();
  $("play").onclick = toggle;
  scrubber.oninput = () => { pause(); seek(Number(scrubber.value)); };
  $("add").onchange = (event) => { if (event.target.value !== "") addPlot(Number(event.target.value)); };
  $("point-body").replaceChildren(...data.bodies.map((body, row) => element("option", { value: row, textContent: body.name })).slice(data.bases));
  $("point-unit").textContent = data.units.length.unit;
  $("point-at").oninput = () => $("point-at").setCustomValidity("");
  $("point").onsubmit = (event) => {
    event.preventDefault();
    const given = $("point-at").value.split(/[,;\s]+/).filter(Boolean).map(Number), row = Number($("point-body").value);
    if (given.length < 2 || given.length > 3 || !given.every(Number.isFinite)) {
      $("point-at").setCustomValidity("Give x, y or x, y, z at the reference pose.");
      return void $("point-at").reportValidity();
    }
    const { position, rotation } = data.bodies[row].reference;
    addPoint(row, vector([...given, 0]).multiplyScalar(data.units.length.si).sub(vector(position)).applyQuaternion(quaternion(rotation).invert()));
  };
  $("trace").onchange = (event) => { if (event.target.value !== "") toggleTrace(traceable[Number(event.target.value)]); };
  const faster = (n) => { const list = $("speed"); list.selectedIndex = Math.min(speeds.length - 1, Math.max(0, list.selectedIndex + n)); };

  const keys = {
    " ": toggle, ArrowLeft: (e) => stepBy(e.shiftKey ? -10 : -1), ArrowRight: (e) => stepBy(e.shiftKey ? 10 : 1),
    Home: () => seek(first), End: () => { pause(); seek(last); }, "+": () => faster(1), "=": () => faster(1), "-": () => faster(-1),
    1: () => look(views.home), 2: () => look(views.front), 3: () => look(views.side), 4: () => look(views.top),
    l: () => flip("labels"), f: () => kinds.forces.most && flip("forces"), m: () => kinds.moments.most && flip("moments"), t: () => flip("traces"),
    c: () => flip("centres"), g: () => flip("grid"), v: () => moves && togglePolygon(), p: () => flip("panel"), d: () => $("theme").click(), s: savePicture, "?": () => $("keys").showModal(),
  };
  addEventListener("keydown", (event) => {
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open || !keys[key]) return;
    if (event.target.matches("select, #point-at") || (key === " " && event.target.matches("button"))) return;
    event.preventDefault();
    keys[key](event);
  });

  function resize() {
    const { clientWidth: w, clientHeight: h } = $("stage");
    if (!w || !h) return;
    renderer.setSize(w, h, false);
    camera.aspect = w / h;
    camera.updateProjectionMatrix();
    for (const plot of plots) drawPlot(plot);
    dirty = true;
  }
  new ResizeObserver(resize).observe($("stage"));

  const stored = time.length === data.samples ? `${time.length} frames` : `${time.length} of ${data.samples} moments`;
  $("facts").textContent = `${nBodies - data.bases} bodies, ${data.joints.length} joints` + (duration > 0 ? `, ${number(duration)} s, ${stored}` : "");
  for (const part of ["footer", "[data-toggle=panel]", "[data-toggle=traces]", "#point"]) document.querySelector(part).hidden = duration <= 0; // a single pose
  apply();
  resize();
  setTheme(theme);
  look(views.home);
  data.plots.forEach(addPlot);
  fillPlots();
  data.traces.forEach(toggleTrace);
  fillTraces();
  requestAnimationFrame(tick);
  if (!calm) play();

  // Another pose in place of the first one, as arrays of the same sizes.
  function placeBodies(values) {
    for (const [name, numbers] of Object.entries(values)) arrays[name].values.set(numbers);
    refresh();
  }

  const rowOf = (name) => data.bodies.findIndex((body) => body.name === name);
  // For scripts: the state of the page, and what its buttons do.
  window.page = {
    data, arrays, seek, play, pause, place: placeBodies, look: (name) => look(views[name]), setTheme,
    camera, addPoint: (name, own) => addPoint(rowOf(name), vector(own)), traces, centrodes,
    centreOf: (one, other) => centreAt(rowOf(one), rowOf(other), moment(now)), polygonNow: () => polygonOf(moment(now)),
    get time() { return now; }, get playing() { return playing; },
    bodyPose: (name) => { const g = bodies[rowOf(name)]; return { position: g.position.toArray(), rotation: [g.quaternion.w, g.quaternion.x, g.quaternion.y, g.quaternion.z] }; },
  };
})();
