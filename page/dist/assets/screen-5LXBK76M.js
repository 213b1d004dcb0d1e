import{d as e}from"./chunk-V5KZCUB3.js";function o(r){return e("main",{class:"page","aria-label":"Workers",children:e("h1",{children:"Workers"})})}export{o as WorkersScreen};
