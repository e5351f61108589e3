"""An environment of Gymnasium: two motors bring the cranks of a five-bar to given angles.

    pip install "loopdyn[gym]"
    python examples/gymnasium_five_bar.py

The observation has the angles of both cranks less those wanted, and their speeds; the action has both torques, from -1
to 1 times the largest one.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

import loopdyn as ld

CRANKS = ("A", "E")
TORQUE = 20.0  # N m, largest
STEP, STEPS = 5e-3, 400  # s, and steps of an episode


class FiveBar(gymnasium.Env):
    """Five-bar whose cranks are to reach random angles within 0.5 rad of the start, and stay there."""

    def __init__(self) -> None:
        mechanism = ld.library.five_bar()
        for crank in CRANKS:
            mechanism.add_motor(f"motor {crank}", crank, torque=0)
        self.sim = ld.Simulation(mechanism.compile(), inputs=[f"motor {crank}" for crank in CRANKS], step=STEP)
        self.start = np.array([self.sim[crank] for crank in CRANKS])
        self.wanted, self.steps = self.start, 0
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float64)
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (4,), np.float64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Begin at the start of the model, with other angles to reach."""
        super().reset(seed=seed)
        self.sim.reset()
        self.steps = 0
        self.wanted = self.start + self.np_random.uniform(-0.5, 0.5, 2)
        return self._observation(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Apply both torques over one step."""
        torque = TORQUE * np.clip(action, -1.0, 1.0)
        going = self.sim.step(torque)
        self.steps += 1
        seen = self._observation()
        reward = -float(seen[:2] @ seen[:2]) - 1e-4 * float(torque @ torque)
        return seen, reward, not going, self.steps >= STEPS, {"message": self.sim.message}

    def _observation(self) -> np.ndarray:
        angles = np.array([self.sim[crank] for crank in CRANKS])
        return np.concatenate([angles - self.wanted, [self.sim[f"{crank}.speed"] for crank in CRANKS]])


def controlled(env: FiveBar, seed: int) -> float:
    """Sum of rewards of an episode under PD control."""
    seen, _ = env.reset(seed=seed)
    total, over = 0.0, False
    while not over:
        seen, reward, ended, late, _ = env.step((-60.0 * seen[:2] - 6.0 * seen[2:]) / TORQUE)
        total, over = total + reward, ended or late
    return total


if __name__ == "__main__":
    print(f"reward under PD control: {controlled(FiveBar(), 0):.3f}")
